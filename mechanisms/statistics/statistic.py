"""What a statistic is: a number made of one or two measured parts, each on a public grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from mechanisms.model.domains import Dataset
from mechanisms.model.executor import Executor
from mechanisms.model.records import Records
from mechanisms.statistics.grid import Plan
from mechanisms.statistics.local import Smooth


@dataclass(frozen=True)
class Measured:
    """Private: the value in steps of the grid, and how far one change may move it.

    ``local`` is a bound at every distance; ``levels`` the one by largest local sensitivities;
    ``support`` a_max over all pairs and LS(0) where noisy local sensitivity is defined. What a
    mechanism does not need may be left out.
    """

    value: int
    local: Smooth | None = None
    levels: Smooth | None = None
    support: tuple[int, int] | None = None


class Part(Protocol):
    """One number that neighbours move by at most its plan's ``cap`` steps."""

    @property
    def what(self) -> str:
        """Its name in the steps of a price."""
        ...

    def plan(self, dataset: Dataset, epsilon_nano: int) -> Plan:
        """The grid for this share of the loss, from public facts alone.

        Raises: UnsupportedQuery where the dataset has no such number.
        """
        ...

    def measure(
        self, records: Records, dataset: Dataset, plan: Plan, executor: Executor
    ) -> Measured:
        """Private, on prepared records of the universe of ``dataset``."""
        ...


class Statistic(Protocol):
    """A question with its parameters; made by its class from the body of a query."""

    @property
    def name(self) -> str:
        """The name in queries."""
        ...

    def parts(self, dataset: Dataset) -> tuple[Part, ...]:
        """What is released, at equal shares; UnsupportedQuery where it does not fit."""
        ...

    def answer(self, dataset: Dataset, released: Sequence[Fraction]) -> Fraction:
        """The value made of released parts: noise and public facts alone."""
        ...

    def factor(self, dataset: Dataset) -> Fraction:
        """What the answer multiplies its part by, where it has just one."""
        ...
