"""A statistic that is its own one part: the answer is the released number itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

from accounting.privacy_loss import NANO
from mechanisms.model.domains import Dataset
from mechanisms.model.executor import Executor
from mechanisms.model.records import Records
from mechanisms.statistics.grid import Plan
from mechanisms.statistics.statistic import Measured, Part


class Single(ABC):
    """Implements ``Statistic`` and ``Part`` at once."""

    name: ClassVar[str]
    what: str

    @abstractmethod
    def plan(self, dataset: Dataset, epsilon_nano: int) -> Plan: ...

    @abstractmethod
    def measure(
        self, records: Records, dataset: Dataset, plan: Plan, executor: Executor
    ) -> Measured: ...

    def parts(self, dataset: Dataset) -> tuple[Part, ...]:
        self.plan(dataset, NANO)
        return (self,)

    def answer(self, dataset: Dataset, released: Sequence[Fraction]) -> Fraction:  # noqa: ARG002
        (value,) = released
        return value

    def factor(self, dataset: Dataset) -> Fraction:  # noqa: ARG002 - the part is the answer
        return Fraction(1)
