"""The sum of a numeric attribute, and the sum around the middle of its bounds.

Numbers are floored to the public grid one by one. So a sum is a whole number of steps, and moves
exactly by the steps of one row.
"""

from __future__ import annotations

from dataclasses import dataclass

from mechanisms.model.domains import Dataset
from mechanisms.model.executor import Executor
from mechanisms.model.records import Records, TableRecords, records_of
from mechanisms.statistics.grid import Plan
from mechanisms.statistics.single_part import SinglePart
from mechanisms.statistics.statistic import Measurement
from mechanisms.statistics.tables import bounds, grid_sum, number_exponent, numeric, replaces


@dataclass(frozen=True)
class Sum(SinglePart):
    """GS: the width of the bounds under replace, the larger |bound| under add/remove.

    LS is the same almost everywhere, so data-dependent noise gains nothing.
    """

    name = "sum"
    title = "Sum"
    description = "The sum of a numeric attribute; a missing cell counts as the middle."
    source = "Dwork, McSherry, Nissim, Smith 2006"

    attribute: str
    what = "sum"

    def plan(self, dataset: Dataset, epsilon_nano: int) -> Plan:
        attribute = numeric(dataset, self.attribute)
        exponent = number_exponent(attribute, epsilon_nano)
        low, high = bounds(attribute, exponent)
        cap = high - low if replaces(dataset) else max(abs(low), abs(high))
        return Plan(exponent, cap)

    def measure(
        self, records: Records, dataset: Dataset, plan: Plan, executor: Executor
    ) -> Measurement:
        numbers = records_of(TableRecords, records).values[self.attribute]
        return Measurement(grid_sum(numbers, plan.exponent, executor))


@dataclass(frozen=True)
class CentredSum(SinglePart):
    """Σ (x − middle of the bounds): GS is half the width under add/remove, the width under
    replace."""

    attribute: str
    what = "sum around the middle of the bounds"

    def plan(self, dataset: Dataset, epsilon_nano: int) -> Plan:
        attribute = numeric(dataset, self.attribute)
        exponent = number_exponent(attribute, epsilon_nano)
        low, high = bounds(attribute, exponent)
        return Plan(exponent, high - low if replaces(dataset) else -(-(high - low) // 2))

    def measure(
        self, records: Records, dataset: Dataset, plan: Plan, executor: Executor
    ) -> Measurement:
        numbers = records_of(TableRecords, records).values[self.attribute]
        middle = self.middle(dataset, plan)
        return Measurement(grid_sum(numbers, plan.exponent, executor) - middle * len(numbers))

    def middle(self, dataset: Dataset, plan: Plan) -> int:
        """The public middle of the bounds, in steps."""
        return sum(bounds(numeric(dataset, self.attribute), plan.exponent)) // 2
