"""How many starts a clustering tries, and the best of them: a public rule, then released sums.

Lloyd's iterations end where they began to go. So several starts are tried for a few iterations
each, and the one whose released counts and sums lie furthest apart is iterated further. Centres of
a start are drawn from noisy counts of single values, so they lie where records are. Then they are
moved together until their mean is that of all records by the same counts. So two centres divide the
records in the middle; without the move they often cut off a corner, and stay there. A cluster that
shows no records gets a newly drawn centre. All this follows from what is released anyway.

Every start costs loss, which the noise of all others pays for. The rule tries more of them only
where the noise of a centre stays below one mismatch of a record.

Source: best of several starts as in Lloyd's algorithm elsewhere; private seeds near the records
instead of uniform ones after Su, Cao, Li, Bertino, Lyu 2017, whose grids do not fit so many axes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from accounting.privacy_loss import PrivacyLoss
from mechanisms.clustering.encoding import Encoding
from mechanisms.clustering.initial import DomainRecord
from mechanisms.clustering.lloyd import Centres, iteration
from mechanisms.distances.metric import Floats
from mechanisms.kernels.level_counts import counts_by_levels
from mechanisms.model.context import QueryContext
from mechanisms.model.domains import Attribute
from mechanisms.model.randomness import WordSource
from mechanisms.model.sensitivity import Integers
from mechanisms.noise.count_noise import Law, noisy
from mechanisms.noise.discrete_gaussian import Deviation
from mechanisms.noise.rate import Rate
from mechanisms.noise.uniform import uniform


@dataclass(frozen=True)
class Trials:
    """A public number of starts, and the iterations that each of them gets; 0 for a single one."""

    starts: int
    iterations: int

    @classmethod
    def of(cls, starts: int) -> Trials:
        """So many starts; many of them need more iterations to be told apart."""
        if starts == 1:
            return cls(1, 0)
        return cls(starts, 2 if starts < 32 else 12)

    @property
    def all(self) -> int:
        return self.starts * self.iterations


#: The numbers of starts, that is, of sets of initial centres, among which the public rule chooses.
#: More starts need a larger loss, because all of them share it.
TRIALS = tuple(Trials.of(starts) for starts in (1, 3, 8, 16, 32))


@dataclass(frozen=True)
class Margins:
    """Released: noisy counts of all values, one array for each attribute."""

    counts: tuple[Integers, ...]

    @property
    def weights(self) -> list[Integers]:
        """The positive counts plus one."""
        return [np.maximum(counts, 0) + 1 for counts in self.counts]

    def record(self, source: WordSource) -> DomainRecord:
        """A record of independent values, in proportion to their weights."""
        return tuple(_drawn(weights, source) for weights in self.weights)


def margin_law(loss: PrivacyLoss, moved: int) -> Law:
    """The noise on counts of all values, of which one change moves ``moved`` by 1."""
    if loss.unpriced:
        return Deviation.of(loss.rho_femto, moved)
    return Rate.of_counts(loss.epsilon_nano, moved)


def noisy_margins(context: QueryContext, attributes: tuple[Attribute, ...], moves: int) -> Margins:
    """Noisy counts of all values. A record moves one count of every attribute by one.

    Privacy: ``context.loss`` under the dataset's relation; ``moves`` as in ``lloyd``.
    """
    sizes = {a.name: len(a.levels) for a in attributes}
    names = [(name,) for name in sizes]
    exact = counts_by_levels(context.table, names, sizes, context.executor)
    law = margin_law(context.loss, moves * len(attributes))
    released = noisy(np.concatenate(exact), law, context)
    ends = np.cumsum([len(a.levels) for a in attributes])[:-1]
    return Margins(tuple(np.split(released, ends)))


def best_start(
    context: QueryContext,
    encoding: Encoding,
    draw: Callable[[], Floats],
    middle: Floats,
    clusters: int,
    trials: Trials,
    moves: int,
) -> Floats:
    """Centres (clusters, axes): of the start whose clusters lie furthest apart, by its last sums.

    Args:
        draw: a new centre, public or from released values.
        middle: the point, public or from released values, to which the mean of each start is moved.

    Privacy: ``context.loss``, in equal shares for all iterations. A single start costs nothing.
    """
    drawn = [np.array([draw() for _ in range(clusters)]) for _ in range(trials.starts)]
    started: list[Floats] = [points + (middle - points.mean(axis=0)) for points in drawn]
    if not trials.all:
        return started[0]
    shares = iter(context.loss.split(trials.all))
    best, widest = started[0], -1.0
    for points in started:
        for _ in range(trials.iterations):
            within = context.at(next(shares))
            reached = renewed(iteration(within, encoding, points, moves), draw)
            points = reached.points
        if (apart := spread(reached)) > widest:
            best, widest = points, apart
    return best


def renewed(reached: Centres, draw: Callable[[], Floats]) -> Centres:
    """The same with a new centre for every cluster whose noisy size may be that of none.

    Two equal centres are such a case: all records belong to the first of them.
    """
    empty = reached.sizes <= reached.error
    if not empty.any() or empty.all():
        return reached
    points = reached.points.copy()
    points[empty] = [draw() for _ in range(int(empty.sum()))]
    return Centres(points, reached.sizes, reached.error)


def spread(reached: Centres) -> float:
    """Σ size·|centre − mean|² over the clusters that show records: large for good clusters.

    Up to noise and a constant it is less the squared distances of all records to their centres.
    """
    sizes = np.where(reached.sizes > reached.error, reached.sizes, 0).astype(np.float64)
    if not sizes.any():
        return 0.0
    mean = sizes @ reached.points / sizes.sum()
    return float(sizes @ ((reached.points - mean) ** 2).sum(axis=1))


def _drawn(weights: Integers, source: WordSource) -> int:
    """An index with probability in proportion to its whole weight."""
    ends = np.cumsum(weights)
    return int(np.searchsorted(ends, uniform(int(ends[-1]), source), side="right"))
