"""The exponential mechanism over cells of a public grid, scored by the error of their ranks."""

from fractions import Fraction
from math import ceil, log

from accounting.composition import Step
from accounting.privacy_loss import NANO, PrivacyLoss
from accounting.rho import BoundedRange
from mechanisms.model.context import QueryContext
from mechanisms.model.domains import Dataset
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.work import Work, together, work
from mechanisms.noise.race import race
from mechanisms.noise.rate import Rate
from mechanisms.statistics.predicate import condition_work
from mechanisms.statistics.quantile import Quantile
from mechanisms.statistics.release.mechanism import (
    CONFIDENCE,
    Accuracy,
    Mechanism,
    share,
    significant,
)
from mechanisms.statistics.statistic import Statistic
from mechanisms.statistics.tables import most_rows


class ExponentialQuantile(Mechanism):
    """Selects a quantile by ε-DP alone; the candidates are the cells of a public grid.

    Numbers are rounded down to cells, so equal numbers cover a whole cell.
    """

    name = "exponential"
    title = "Exponential mechanism"
    description = (
        "Chooses a cell of a public grid over the bounds, likely one whose rank is close to the "
        "one asked for. Good even where a few numbers lie far from all others."
    )
    source = "McSherry and Talwar 2007, Theorem 6; Smith 2011 for quantiles"

    def steps(self, statistic: Statistic, dataset: Dataset, loss: PrivacyLoss) -> tuple[Step, ...]:
        question = _quantile(statistic)
        self._rate(question, dataset, loss)
        bound = BoundedRange(loss.epsilon())
        return (Step(f"exponential mechanism: {question.what}", loss, bound=bound),)

    def accuracy(self, statistic: Statistic, dataset: Dataset, loss: PrivacyLoss) -> Accuracy:
        question = _quantile(statistic)
        per_rank = float(share(loss)) * question.quantile.denominator / 2
        rows = log(self._misses(question, dataset)) / per_rank
        return {
            "confidence": CONFIDENCE,
            "rank_error": significant(rows * question.rank_sensitivity(dataset)),
            "explanation": (
                "With this probability the value's rank is within `rank_error` rows of the one "
                "asked for; how far the value is from the true one depends on the records, at most "
                "by the width of the bounds."
            ),
        }

    def loss_reaching(self, statistic: Statistic, dataset: Dataset, error: float) -> PrivacyLoss:
        question = _quantile(statistic)
        steps = 2 * question.rank_sensitivity(dataset) / question.quantile.denominator
        misses = log(self._misses(question, dataset))
        return PrivacyLoss(max(1, ceil(misses * steps * NANO / error)))

    def work(self, statistic: Statistic, dataset: Dataset, loss: PrivacyLoss) -> Work:
        question = _quantile(statistic)
        cells, rows = question.cell_count(dataset), most_rows(dataset)
        scored = work("exponential quantile", cells * rows.bit_length())
        if question.where is None:
            return together(question.work(dataset), scored)
        # If the query has a condition, each row is assigned to its cell by binary search, and no
        # row is sorted.
        searched = work("rows in cells", rows * cells.bit_length())
        return together(condition_work(question.where, rows, dataset), scored, searched)

    def release(self, statistic: Statistic, context: QueryContext) -> Fraction:
        question = _quantile(statistic)
        rate = self._rate(question, context.dataset, context.loss)
        cells = question.cells(context.dataset)
        scores = question.rank_scores(context, cells)
        (place,) = race(scores, 1, rate, context.randomness, context.executor)
        return Fraction(float(cells[place]))

    def _rate(self, question: Quantile, dataset: Dataset, loss: PrivacyLoss) -> Rate:
        question.plan(dataset, NANO)
        share(loss)
        return Rate(loss.epsilon_nano, 2 * NANO * question.rank_sensitivity(dataset))

    def _misses(self, question: Quantile, dataset: Dataset) -> float:
        """The number of cells divided by the probability of an error beyond the bound."""
        return len(question.cells(dataset)) / (1 - CONFIDENCE)


def _quantile(statistic: Statistic) -> Quantile:
    if not isinstance(statistic, Quantile):
        raise UnsupportedQuery("the exponential mechanism is for quantiles")
    return statistic
