"""The sum of a numeric attribute, and the same around the middle of its bounds.

Numbers are floored to the public grid one by one, so a sum is a whole number of steps and moves
exactly by what one row's steps move.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mechanisms.model.domains import Dataset
from mechanisms.model.executor import Executor
from mechanisms.model.records import Records
from mechanisms.statistics.grid import Plan
from mechanisms.statistics.single import Single
from mechanisms.statistics.statistic import Measured
from mechanisms.statistics.tables import (
    bounds,
    grid_sum,
    number_exponent,
    numeric,
    replaces,
    table_records,
)


@dataclass(frozen=True)
class Sum(Single):
    """GS: the width of the bounds when a row is replaced, the larger |bound| when it comes or
    goes; LS is the same almost everywhere, so noise that follows the records gains nothing."""

    name: ClassVar[str] = "sum"
    title: ClassVar[str] = "Sum"
    description: ClassVar[str] = (
        "The sum of a numeric attribute; a missing cell counts as the middle."
    )
    source: ClassVar[str] = "Dwork, McSherry, Nissim, Smith 2006"

    attribute: str
    what = "sum"

    def plan(self, dataset: Dataset, epsilon_nano: int) -> Plan:
        attribute = numeric(dataset, self.attribute)
        exponent = number_exponent(attribute, epsilon_nano)
        low, high = bounds(attribute, exponent)
        cap = high - low if replaces(dataset) else max(abs(low), abs(high))
        return Plan(exponent, cap)

    def measure(
        self,
        records: Records,
        dataset: Dataset,  # noqa: ARG002 - the grid is in the plan
        plan: Plan,
        executor: Executor,
    ) -> Measured:
        numbers = table_records(records).values[self.attribute]
        return Measured(grid_sum(numbers, plan.exponent, executor))


@dataclass(frozen=True)
class CentredSum(Single):
    """Σ (x − middle of the bounds): GS is half the width when a row comes or goes, and the whole
    width when it is replaced."""

    attribute: str
    what = "sum around the middle of the bounds"

    def plan(self, dataset: Dataset, epsilon_nano: int) -> Plan:
        attribute = numeric(dataset, self.attribute)
        exponent = number_exponent(attribute, epsilon_nano)
        low, high = bounds(attribute, exponent)
        return Plan(exponent, high - low if replaces(dataset) else -(-(high - low) // 2))

    def measure(
        self, records: Records, dataset: Dataset, plan: Plan, executor: Executor
    ) -> Measured:
        numbers = table_records(records).values[self.attribute]
        middle = self.middle(dataset, plan)
        return Measured(grid_sum(numbers, plan.exponent, executor) - middle * len(numbers))

    def middle(self, dataset: Dataset, plan: Plan) -> int:
        """The public middle, in steps."""
        return sum(bounds(numeric(dataset, self.attribute), plan.exponent)) // 2
