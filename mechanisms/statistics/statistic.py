"""The protocol of a statistic: a number made of one or two measured parts, each on a public
grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from mechanisms.model.domains import Dataset
from mechanisms.model.executor import Executor
from mechanisms.model.records import Records
from mechanisms.statistics.grid import Plan
from mechanisms.statistics.local_sensitivity import SmoothBound


@dataclass(frozen=True)
class Measurement:
    """Private: the value in steps of the grid, and bounds on what one change moves it.

    ``local`` is a bound at every distance, ``levels`` the bound by largest local sensitivities.
    ``support`` is a_max over all pairs and LS(0), for noisy local sensitivity. A bound that no
    mechanism needs may be None.
    """

    value: int
    local: SmoothBound | None = None
    levels: SmoothBound | None = None
    support: tuple[int, int] | None = None


class Part(Protocol):
    """One number that neighbours move by at most ``cap`` steps of its plan."""

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
    ) -> Measurement:
        """Private: the measured number, from prepared records that satisfy the domain of
        ``dataset``."""
        ...


class Statistic(Protocol):
    """A question with its parameters; its class builds it from the body of a query."""

    @property
    def name(self) -> str:
        """The name in queries."""
        ...

    def parts(self, dataset: Dataset) -> tuple[Part, ...]:
        """The parts to release, at equal shares. Raises: UnsupportedQuery if they do not fit."""
        ...

    def answer(self, dataset: Dataset, released: Sequence[Fraction]) -> Fraction:
        """The value, computed from released parts and public facts alone."""
        ...

    def factor(self, dataset: Dataset) -> Fraction:
        """The factor between the only part and the answer."""
        ...
