"""The sum and the mean of a numeric attribute; the mean is a sum over a public or noisy count.

Numbers are floored to the public grid one by one. So a sum is a whole number of steps, and one
row moves it by exactly the steps of its own number.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from accounting.privacy_loss import NANO
from mechanisms.model.context import QueryContext
from mechanisms.model.domains import Dataset
from mechanisms.statistics.count import Count
from mechanisms.statistics.grid import Plan
from mechanisms.statistics.statistic import Measurement, Part, Statistic
from mechanisms.statistics.tables import (
    bounds,
    grid_sum,
    number_grid,
    numeric,
    public_rows,
    replaces,
)


@dataclass(frozen=True)
class Sum(Part):
    """A sum, whose global sensitivity is the width of the bounds under replace.

    Under add/remove it is the larger absolute bound. The local sensitivity is the same almost
    everywhere, so data-dependent noise gains nothing.
    """

    name = "sum"
    title = "Sum"
    description = "The sum of a numeric attribute; a missing cell counts as the middle."
    source = "Dwork, McSherry, Nissim, Smith 2006"

    attribute: str
    what = "sum"

    def origin(self, low: int, high: int) -> int:
        """Return the public number, in grid steps, that is subtracted from every number."""
        return 0

    def plan(self, dataset: Dataset, epsilon_nano: int) -> Plan:
        exponent, low, high = number_grid(dataset, self.attribute, epsilon_nano)
        origin = self.origin(low, high)
        cap = high - low if replaces(dataset) else max(abs(low - origin), abs(high - origin))
        return Plan(exponent, cap)

    def measure(self, context: QueryContext, plan: Plan) -> Measurement:
        numbers = context.table.values[self.attribute]
        origin = self.origin(*bounds(context.dataset, self.attribute, plan.exponent))
        return Measurement(
            grid_sum(numbers, plan.exponent, context.executor) - origin * len(numbers)
        )


@dataclass(frozen=True)
class CentredSum(Sum):
    """The sum of x − middle of the bounds, over the numbers x of all rows.

    Its global sensitivity is the width of the bounds under replace, half of it under add/remove.
    """

    what = "sum around the middle of the bounds"

    def origin(self, low: int, high: int) -> int:
        return (low + high) // 2


@dataclass(frozen=True)
class Mean(Statistic):
    """A noisy sum divided by the number of rows, which is private too under add/remove.

    Then sum and count are released at half of the loss each. The mean of no rows is the middle of
    the bounds.
    """

    name = "mean"
    title = "Mean"
    description = "The mean of a numeric attribute, inside its bounds."
    source = "Dwork, McSherry, Nissim, Smith 2006, for sum and count"

    attribute: str

    def parts(self, dataset: Dataset) -> tuple[Part, ...]:
        centred = CentredSum(self.attribute)
        centred.plan(dataset, NANO)
        if not replaces(dataset):
            return centred, Count()
        public_rows(dataset)
        return (centred,)

    def answer(self, dataset: Dataset, released: Sequence[Fraction]) -> Fraction:
        attribute = numeric(dataset, self.attribute)
        lower, upper = Fraction(attribute.lower), Fraction(attribute.upper)
        rows = Fraction(public_rows(dataset)) if replaces(dataset) else released[1]
        mean = (lower + upper) / 2 + released[0] / max(rows, Fraction(1))
        return min(max(mean, lower), upper)

    def factor(self, dataset: Dataset) -> Fraction:
        return 1 / Fraction(max(public_rows(dataset), 1)) if replaces(dataset) else Fraction(1)
