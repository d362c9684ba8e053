"""A query as the client sends it, and the base class of the calls of all kinds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from privypurse.amounts import Number
from privypurse.levels import Columns

A = TypeVar("A")

#: A utility: its name, or ``{"name": …, "weight": …}``. A Pareto score also accepts
#: ``{"weighted_sum": [utilities], "name": …}``.
Utility = str | Mapping[str, Any]
Selector = Literal["permute_and_flip", "exponential"]
Sensitivity = Literal["global", "local", "flattened", "shifted"]
#: The sensitivities that a selection may name. With ``auto`` the service chooses one by its public
#: rule.
AutoSensitivity = Literal["auto", "global", "local", "flattened", "shifted"]


@dataclass(frozen=True)
class Query(Generic[A]):
    """A query without its dataset and price; ``read`` turns a reply into the answer."""

    body: Mapping[str, Any]
    read: Callable[[Mapping[str, Any], Columns], A]
    #: True if ``read`` needs the public description of the table.
    described: bool = False


class Call(ABC):
    """The base of the classes that each give ``PrivyPurse`` a method for one kind of query."""

    @abstractmethod
    def ask(
        self,
        dataset: str,
        query: Query[A],
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        key: str | None = None,
        timeout: float | None = None,
    ) -> A:
        """The answer to one query, charged ``epsilon`` or ``rho`` exactly and once."""


def members(utilities: Utility | Sequence[Utility]) -> list[Mapping[str, Any]]:
    """One utility or several, in the form that the body of a query contains."""
    several = [utilities] if isinstance(utilities, (str, Mapping)) else utilities
    return [{"name": one} if isinstance(one, str) else one for one in several]
