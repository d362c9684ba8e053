"""The mean of a numeric attribute: a noisy sum over a count that is public or noisy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from accounting.privacy_loss import NANO
from mechanisms.model.domains import Dataset
from mechanisms.statistics.count import Count
from mechanisms.statistics.statistic import Part
from mechanisms.statistics.sums import CentredSum
from mechanisms.statistics.tables import numeric, public_rows, replaces


@dataclass(frozen=True)
class Mean:
    """Implements ``Statistic``. Under add/remove the count is private too.

    Then there are two releases, each with half of the loss. The mean of no rows is the middle of
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
