"""The sum and the mean of a numeric attribute; the mean is a sum over a public or noisy count.

Numbers are floored to the public grid one by one. So a sum is a whole number of steps, and one
row moves it by exactly the steps of its own number.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from mechanisms.model.context import QueryContext
from mechanisms.model.domains import Dataset
from mechanisms.model.work import Work, together, work
from mechanisms.statistics.count import Count
from mechanisms.statistics.grid import Plan
from mechanisms.statistics.predicate import Condition, condition_work, fits
from mechanisms.statistics.statistic import Measurement, Part, Statistic
from mechanisms.statistics.tables import (
    blocks,
    bounds,
    grid_sum,
    most_rows,
    number_bounds,
    number_grid,
    public_rows,
    replaces,
    rows_where,
)


@dataclass(frozen=True)
class Sum(Part):
    """A sum, whose global sensitivity is the width of the bounds under replace.

    Under add/remove it is the larger absolute bound. The local sensitivity is the same almost
    everywhere, so data-dependent noise gains nothing. A row that does not meet the condition adds
    nothing, as if it had the number 0. With a condition a replacement therefore moves the sum by up
    to the larger of the width and of both absolute bounds: 20 for bounds of 10 and 20.
    """

    name = "sum"
    title = "Sum"
    description = (
        "The sum of a numeric attribute over the rows that meet a condition; without one, over all "
        "rows. A missing cell counts as the middle."
    )
    source = "Dwork, McSherry, Nissim, Smith 2006"

    attribute: str
    where: Condition | None = None
    what = "sum"

    def origin(self, low: int, high: int) -> int:
        """Return the public number, in grid steps, that is subtracted from every number."""
        return 0

    def plan(self, dataset: Dataset, epsilon_nano: int) -> Plan:
        exponent, low, high = number_grid(dataset, self.attribute, epsilon_nano)
        if self.where is not None:
            fits(self.where, dataset)
        origin = self.origin(low, high)
        alone = max(abs(low - origin), abs(high - origin))
        if not replaces(dataset):
            return Plan(exponent, alone)
        return Plan(exponent, high - low if self.where is None else max(high - low, alone))

    def work(self, dataset: Dataset) -> Work:
        rows = most_rows(dataset)
        return together(work("sum of numbers", rows), condition_work(self.where, rows, dataset))

    def measure(self, context: QueryContext, plan: Plan) -> Measurement:
        numbers = context.table.values[self.attribute]
        origin = self.origin(*bounds(context.dataset, self.attribute, plan.exponent))
        met = rows_where(self.where, context)
        starts = blocks(context.dataset)
        return Measurement(grid_sum(numbers, plan.exponent, origin, context.executor, starts, met))

    def excess(self, dataset: Dataset, plan: Plan) -> Fraction:
        """Each number is rounded down by less than a step."""
        return most_rows(dataset) * plan.step


@dataclass(frozen=True)
class CentredSum(Sum):
    """The sum of x − middle of the bounds, over the numbers x of the rows.

    Its global sensitivity is the width of the bounds under replace, half of it under add/remove,
    with a condition or without.
    """

    what = "sum around the middle of the bounds"

    def origin(self, low: int, high: int) -> int:
        return (low + high) // 2


@dataclass(frozen=True)
class Mean(Statistic):
    """A noisy sum divided by the number of rows, which is private too under add/remove.

    Then sum and count are released at half of the loss each; so they are with a condition, because
    the number of rows that meet it is private under both relations. The mean of no rows is the
    middle of the bounds.
    """

    name = "mean"
    title = "Mean"
    description = (
        "The mean of a numeric attribute over the rows that meet a condition, or over all rows; "
        "inside its bounds."
    )
    source = "Dwork, McSherry, Nissim, Smith 2006, for sum and count"

    attribute: str
    where: Condition | None = None

    def counts(self, dataset: Dataset) -> bool:
        """True if the number of rows is private, so that its count is a part."""
        return self.where is not None or not replaces(dataset)

    def parts(self, dataset: Dataset) -> tuple[Part, ...]:
        centred = CentredSum(self.attribute, self.where)
        if self.counts(dataset):
            return centred, Count() if self.where is None else Count(self.where)
        public_rows(dataset)
        return (centred,)

    def raw(self, dataset: Dataset, released: Sequence[Fraction]) -> Fraction:
        lower, upper = self.limits(dataset)
        rows = released[1] if self.counts(dataset) else Fraction(public_rows(dataset))
        return (lower + upper) / 2 + released[0] / max(rows, Fraction(1))

    def limits(self, dataset: Dataset) -> tuple[Fraction, Fraction]:
        return number_bounds(dataset, self.attribute)

    def origin(self, dataset: Dataset, plan: Plan) -> Fraction:
        """The public number that the sum on this grid subtracts from the number of each row."""
        low, high = bounds(dataset, self.attribute, plan.exponent)
        return CentredSum(self.attribute).origin(low, high) * plan.step

    def factor(self, dataset: Dataset) -> Fraction:
        if self.counts(dataset):
            return Fraction(1)
        return 1 / Fraction(max(public_rows(dataset), 1))
