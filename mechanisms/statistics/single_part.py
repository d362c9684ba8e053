"""A statistic with a single part: the answer is the released number itself."""

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
from mechanisms.statistics.statistic import Measurement, Part


class SinglePart(ABC):
    """Implements ``Statistic`` and ``Part`` together."""

    name: ClassVar[str]
    title: ClassVar[str]
    description: ClassVar[str]
    source: ClassVar[str]
    what: str

    @abstractmethod
    def plan(self, dataset: Dataset, epsilon_nano: int) -> Plan: ...

    @abstractmethod
    def measure(
        self, records: Records, dataset: Dataset, plan: Plan, executor: Executor
    ) -> Measurement: ...

    def parts(self, dataset: Dataset) -> tuple[Part, ...]:
        self.plan(dataset, NANO)
        return (self,)

    def answer(self, dataset: Dataset, released: Sequence[Fraction]) -> Fraction:
        (value,) = released
        return value

    def factor(self, dataset: Dataset) -> Fraction:
        return Fraction(1)
