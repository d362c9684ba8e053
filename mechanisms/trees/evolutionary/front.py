"""Trees along the front of both rates: each draw ranks by a weighting of its own.

Draw j of k weighs the true positive rate by (2j − 1)/2k and the true negative rate by the rest. So
the drawn trees trade one rate for the other in even steps. Rates are hits divided by the sizes of
the classes, which are released once. So a score is a sum of hits with public factors, and one
record moves it by one step at most. A score of dominance may move with every other tree instead.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np

from accounting.composition import Step, repeated
from accounting.privacy_loss import PrivacyLoss
from mechanisms.kernels.forests import Confusion
from mechanisms.model.context import QueryContext
from mechanisms.model.domains import Dataset
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.sensitivity import Integers
from mechanisms.model.work import Work, times, work
from mechanisms.noise.count_noise import noisy
from mechanisms.noise.rate import Rate, score_bits
from mechanisms.selection import Selector
from mechanisms.statistics.tables import replaces
from mechanisms.trees.evolutionary.ranking import Ranking
from mechanisms.utilities.tables import row_bound

#: The number of binary digits of a tree's score. The objective ``front`` scores trees anew for each
#: draw, so these are the digits for a single draw.
BITS = score_bits(1)


@dataclass(frozen=True)
class Front(Ranking):
    """The objective ``front``.

    ``sizes``: the released sizes of the positive class and of all others.
    """

    sizes: tuple[int, int] = (1, 1)
    #: The share of the privacy loss that releases the noisy sizes of the positive class and of all
    #: others. The numbers of records that a tree classifies correctly are divided by these sizes.
    share: ClassVar[Fraction] = Fraction(1, 20)

    def check(self, dataset: Dataset, pool: int, draws: int) -> None:
        del pool, draws
        if row_bound(dataset) >= 1 << (62 - BITS):
            raise UnsupportedQuery("the public bound on rows is too large for exact arithmetic")

    def work(self, dataset: Dataset, pool: int, draws: int) -> Work:
        """As ``Ranking.work``: each draw has scores of its own."""
        del dataset
        return times(work("hits of trees", pool), draws)

    def first_steps(self, dataset: Dataset, loss: PrivacyLoss) -> tuple[Step, ...]:
        _size_rate(dataset, loss)
        return (Step("noisy sizes of the positive class and of all others", loss),)

    def released(self, context: QueryContext, counts: Confusion) -> Self:
        exact = np.array([counts.positives, counts.negatives], np.int64)
        sizes = noisy(exact, _size_rate(context.dataset, context.loss), context)
        positives, negatives = np.maximum(sizes, 1).tolist()
        return replace(self, sizes=(positives, negatives))

    def steps(self, selector: Selector, loss: PrivacyLoss, draws: int) -> tuple[Step, ...]:
        """A step per draw, because each draw has scores of its own."""
        share, _ = loss.shares(draws)
        (one,) = selector.steps(share, 1, "peeled")
        return repeated(one.what, loss, draws, lambda spent: selector.rho_bound(spent, 1))

    def factors(self, draw: int, draws: int) -> tuple[int, int]:
        """The public factors of a true positive and a true negative; the larger is 2^BITS.

        ``draw`` counts from 1.
        """
        weight = Fraction(2 * draw - 1, 2 * draws)
        parts = weight / self.sizes[0], (1 - weight) / self.sizes[1]
        first, second = (round(part / max(parts) * (1 << BITS)) for part in parts)
        return first, second

    def scores(self, counts: Confusion, draw: int, draws: int) -> Integers:
        """Private whole scores, one per counted tree.

        A record more raises each by at most 2^BITS, and lowers none.
        """
        first, second = self.factors(draw, draws)
        scores: Integers = first * counts.true_positives + second * counts.true_negatives
        return scores

    def drawn(
        self, counts: Confusion, draws: int, selector: Selector, context: QueryContext
    ) -> list[int]:
        """As ``Ranking.drawn``, by adaptive composition of the draws.

        Under ``add_remove`` all scores of a draw move one way, under ``replace`` by one step in any
        directions.
        """
        rest, chosen = np.arange(len(counts.true_positives)), list[int]()
        means, one_way = (context.randomness, context.executor), not replaces(context.dataset)
        for number, loss in enumerate(context.loss.split(draws), 1):
            scores = self.scores(counts, number, draws)[rest]
            (place,) = selector.top(scores, BITS, loss, 1, "peeled", *means, one_way=one_way)
            chosen.append(int(rest[place]))
            rest = np.delete(rest, place)
        return chosen


def _size_rate(dataset: Dataset, loss: PrivacyLoss) -> Rate:
    """The noise rate of the sizes: a record is in one class, a replacement moves both by one."""
    return Rate.of_counts(loss.epsilon_nano, 2 if replaces(dataset) else 1)
