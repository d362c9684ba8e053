"""Statistics: a number made of one or two measured parts, each on a public grid."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from accounting.privacy_loss import NANO
from mechanisms.model.domains import Dataset
from mechanisms.model.executor import Executor
from mechanisms.model.records import Records
from mechanisms.statistics.grid import Plan
from mechanisms.statistics.local_sensitivity import SmoothBound


@dataclass(frozen=True)
class Measurement:
    """Private: the value in steps of the grid, and bounds on what one change moves it.

    ``local`` is a bound at every distance, ``levels`` the bound by largest local sensitivities.
    ``support`` is a_max over all pairs, LS(0) and the public bound on what one change moves LS, for
    noisy local sensitivity. A bound that no mechanism needs may be None.
    """

    value: int
    local: SmoothBound | None = None
    levels: SmoothBound | None = None
    support: tuple[int, int, int] | None = None


class Statistic(ABC):
    """A question with its parameters; its class builds it from the body of a query."""

    #: The name in queries; title, description and source for the catalogue.
    name: ClassVar[str]
    title: ClassVar[str]
    description: ClassVar[str]
    source: ClassVar[str]

    @abstractmethod
    def parts(self, dataset: Dataset) -> tuple[Part, ...]:
        """The parts to release, at equal shares. Raises: UnsupportedQuery if they do not fit."""

    @abstractmethod
    def answer(self, dataset: Dataset, released: Sequence[Fraction]) -> Fraction:
        """The value, computed from released parts and public facts alone."""

    def factor(self, dataset: Dataset) -> Fraction:
        """The factor between the only part and the answer."""
        return Fraction(1)


class Part(Statistic):
    """One number that neighbours move by at most ``cap`` steps of its plan.

    As a statistic it is its own only part, and the answer is the released number.
    """

    #: Its name in the steps of a price.
    what: str

    @abstractmethod
    def plan(self, dataset: Dataset, epsilon_nano: int) -> Plan:
        """The grid for this share of the loss, from public facts alone.

        Raises: UnsupportedQuery where the dataset has no such number.
        """

    @abstractmethod
    def measure(
        self, records: Records, dataset: Dataset, plan: Plan, executor: Executor
    ) -> Measurement:
        """Private: the number, from prepared records that satisfy the domain of ``dataset``."""

    def parts(self, dataset: Dataset) -> tuple[Part, ...]:
        self.plan(dataset, NANO)
        return (self,)

    def answer(self, dataset: Dataset, released: Sequence[Fraction]) -> Fraction:
        (value,) = released
        return value
