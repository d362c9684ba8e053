"""Public work: how many units of each kind of work a query takes at most.

Danger: work must be a function of the description of the dataset and of the request alone, because
queries are scheduled, refused and released by it. It bounds every dataset of the description.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce


@dataclass(frozen=True)
class Amount:
    """``calls`` of one kind of work, with ``units`` in all of them together."""

    calls: int
    units: int

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(self.calls + other.calls, self.units + other.units)

    def __mul__(self, times: int) -> "Amount":
        return Amount(self.calls * times, self.units * times)


#: The public bound on calls and units of each kind of work, such as "rows of tables", by the name
#: of the kind.
Work = Mapping[str, Amount]
NOTHING: Work = {}


def work(kind: str, units: int, calls: int = 1) -> Work:
    """Work of one kind."""
    return {kind: Amount(calls, units)}


def together(*parts: Work) -> Work:
    """The sum of several works."""

    def added(one: Work, other: Work) -> Work:
        return {**one, **{k: one[k] + more if k in one else more for k, more in other.items()}}

    return reduce(added, parts, {})


def times(part: Work, count: int) -> Work:
    """``count`` times the same work."""
    return {kind: amount * count for kind, amount in part.items()}
