"""The price of a clustering, from public facts alone."""

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

from accounting.composition import Step, repeated
from accounting.privacy_loss import PrivacyLoss
from mechanisms.clustering.initial import DomainRecord, check_enough
from mechanisms.clustering.lloyd import Rates
from mechanisms.distances import plan
from mechanisms.distances.plan import MAX_CELLS, MAX_WORK, Plan
from mechanisms.model.domains import Attribute, Dataset, NeighbouringRelation
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.work import NOTHING, Work, together, work
from mechanisms.utilities.tables import row_bound

#: Coordinates are rounded to 2^−20, or more coarsely, down to 2^−8, if there are very many.
FINEST, COARSEST = 20, 8


@dataclass(frozen=True)
class ClusteringPlan:
    """The public plan. ``metric`` learns an encoding; without it codes are one-hot, at no loss."""

    dataset: Dataset
    attributes: tuple[Attribute, ...]
    metric: Plan | None
    distance_share: Fraction
    clusters: int
    iterations: int
    initial: tuple[DomainRecord, ...] | None = None

    def __post_init__(self) -> None:
        check_enough(self.attributes, self.clusters)
        self.bits  # noqa: B018 - raises where no grid fits
        values = sum(len(attribute.levels) for attribute in self.attributes)
        if values * (self.clusters + values) > MAX_CELLS:
            raise UnsupportedQuery(
                "clusters of so many values are too large", supported={"cells": MAX_CELLS}
            )
        steps = len(self.attributes) * self.clusters * self.iterations
        if steps * row_bound(self.dataset) > MAX_WORK:
            raise UnsupportedQuery(
                "the public bound on rows is too large for so many clusters and iterations",
                supported={"rows": MAX_WORK // steps},
            )

    def work(self) -> Work:
        """The public work of a clustering."""
        rows, values = row_bound(self.dataset), sum(len(one.levels) for one in self.attributes)
        units = rows * len(self.attributes) * self.clusters + values * (values + self.clusters)
        learned = NOTHING if self.metric is None else self.metric.work()
        return together(learned, work("clusters", self.iterations * units, self.iterations))

    @property
    def moves(self) -> int:
        """The number of records that one change adds or removes; a replacement does both."""
        return 2 if self.dataset.neighbouring is NeighbouringRelation.REPLACE else 1

    @property
    def most_reach(self) -> int:
        """A public bound, in units, on the reach R of the encoding, before it is learned."""
        if self.metric is None:
            return len(self.attributes)
        values = sum(self.metric.levels)
        return sum(isqrt(values - levels) + 2 for levels in self.metric.levels)

    @property
    def bits(self) -> int:
        """The most bits of a coordinate for which the noise of sums stays in exact arithmetic."""
        for bits in range(FINEST, COARSEST - 1, -1):
            if self.moves * (1 + self.most_reach) << bits < 1 << 32:
                return bits
        raise UnsupportedQuery("there are too many attributes for exact arithmetic")

    def shares(self, loss: PrivacyLoss) -> tuple[PrivacyLoss, PrivacyLoss]:
        """The loss of the metric, rounded down, and that of all iterations."""
        if self.metric is None:
            return PrivacyLoss(0), loss
        return loss.divided(self.distance_share)

    def steps(self, loss: PrivacyLoss) -> tuple[Step, ...]:
        """The steps that spend ``loss``; they add up to it exactly."""
        metric, iterations = self.shares(loss)
        for share in iterations.shares(self.iterations):
            Rates.of(share, self.most_reach << self.bits, self.bits, self.moves)
        what = "an iteration: noisy count and sums of every cluster"
        steps = repeated(what, iterations, self.iterations)
        return steps if self.metric is None else (*self.metric.steps(metric), *steps)

    def count_noise_scale(self, loss: PrivacyLoss) -> float:
        """A bound on the scale of the noise on the count of a cluster, in records."""
        share, _ = self.shares(loss)[1].shares(self.iterations)
        rates = Rates.of(share, self.most_reach << self.bits, self.bits, self.moves)
        return float(1 / rates.counts.exponent())


def participants(dataset: Dataset, names: tuple[str, ...] | None) -> tuple[Attribute, ...]:
    """The attributes with these names, or all but the class attribute, in the domain's order."""
    row_bound(dataset)
    chosen = plan.participants(dataset, names)
    if not chosen:
        raise UnsupportedQuery("clustering needs an attribute beside the class attribute")
    return chosen
