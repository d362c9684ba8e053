"""The price of a clustering, from public facts alone."""

from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, isqrt, sqrt

from accounting.composition import Step, repeated
from accounting.privacy_loss import NANO, PrivacyLoss
from accounting.rho import FEMTO
from mechanisms.clustering.initial import DomainRecord, check_enough
from mechanisms.clustering.lloyd import Deviations, Rates
from mechanisms.clustering.starts import TRIALS, Trials, margin_law
from mechanisms.distances import plan
from mechanisms.distances.plan import MAX_CELLS, MAX_WORK, Plan
from mechanisms.model.domains import Attribute, Dataset, NeighbouringRelation
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.work import NOTHING, Work, together, work
from mechanisms.noise.discrete_gaussian import GAUSSIAN_WORK
from mechanisms.utilities.tables import row_bound

#: The most and the fewest binary digits after the point of a coordinate. Fewer than 20 are used if
#: there are many attributes. Otherwise the noise on sums would exceed the 64 bits of exact
#: arithmetic.
FINEST, COARSEST = 20, 8
#: The fewest binary digits of a coordinate under Gaussian noise. At a small ρ this noise is so wide
#: that, with more digits, it would exceed exact arithmetic.
COARSEST_OF_WIDE = 4
#: A public rule chooses the number of starts, that is, of sets of initial centres that are tried.
#: All their iterations together may take at most this work, which is about one second. The unit is
#: the distance of one row to one centre on one attribute.
RULE_WORK = 1 << 29
#: Estimated run times of an iteration: of each row apart from its distances to the centres, and of
#: each attribute of the row. The unit is the distance to one centre on one attribute.
ROW, ATTRIBUTE = 8, 2


@dataclass(frozen=True)
class Parts:
    """The losses of a clustering from starts of its own."""

    margins: PrivacyLoss
    trials: PrivacyLoss
    iterations: PrivacyLoss


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
    #: The number of starts, each with initial centres of its own; None leaves the number to the
    #: public rule ``trials``. If the analyst names the initial centres, they are the only start.
    starts: int | None = None

    def __post_init__(self) -> None:
        check_enough(self.attributes, self.clusters)
        self.bits  # noqa: B018 - the property raises if no grid fits
        values = sum(len(attribute.levels) for attribute in self.attributes)
        if values * (self.clusters + values) > MAX_CELLS:
            raise UnsupportedQuery(
                "clusters of so many values are too large", supported={"cells": MAX_CELLS}
            )
        steps = len(self.attributes) * self.clusters * self.iterations
        if self.starts is not None:
            steps = len(self.attributes) * self.clusters * self.releases(Trials.of(self.starts))
        if steps * row_bound(self.dataset) > MAX_WORK:
            raise UnsupportedQuery(
                "the public bound on rows is too large for so many clusters and iterations",
                supported={"rows": MAX_WORK // steps},
            )

    def releases(self, trials: Trials) -> int:
        """The releases of all starts, of the last iterations and of the margins."""
        return self.iterations if self.initial else 1 + trials.all + self.last(trials)

    def last(self, trials: Trials) -> int:
        """The iterations after those of the trial, which count for the start that wins."""
        return max(1, self.iterations - trials.iterations)

    def trials(self, loss: PrivacyLoss) -> Trials:
        """The starts at ``loss`` for all of them: the most whose noise and work are acceptable."""
        amount = loss.rho_femto if loss.unpriced else loss.epsilon_nano
        choices = self.choices(loss.unpriced > 0)
        return [trials for trials, least in choices if least <= amount][-1]

    def choices(self, in_rho: bool = False) -> list[tuple[Trials, int]]:
        """The starts to choose from, each with the least loss of all iterations for it.

        It is ε in nano, or with ``in_rho`` ρ in femto.
        """
        if self.initial is not None or self.starts is not None:
            return [(Trials.of(self.starts or 1), 0)]
        rows, axes = row_bound(self.dataset), sum(len(one.levels) for one in self.attributes)
        work = len(self.attributes) * self.clusters * rows
        few = [trials for trials in TRIALS if self.releases(trials) * work <= RULE_WORK]
        # The error of a centre is the noise of its sums divided by the mean cluster size. On
        # ``axes`` coordinates, Laplace noise has a length of about its scale times √(2·axes).
        # Gaussian noise has σ·√axes, where σ² is moves·(1 + attributes)·releases/(2ρ). ``moves`` is
        # 2 if one change replaces a record, else 1. More starts are tried only where the error is
        # at most 1.
        if in_rho:
            whole = self.moves * (1 + len(self.attributes))
            each = FEMTO * whole * axes * (self.clusters / rows) ** 2 / 2
        else:
            length = (1 + self.most_reach) * self.moves * self.clusters / rows * sqrt(2 * axes)
            each = NANO * length
        least = [ceil(each * self.releases(trials)) for trials in few]
        return [(Trials.of(1), 0), *list(zip(few, least, strict=True))[1:]]

    def whole_for(self, nano: int) -> PrivacyLoss:
        """The least loss that leaves this much to the iterations and their starts."""
        whole = nano if self.metric is None else int(nano / (1 - self.distance_share))
        while self.shares(PrivacyLoss(whole))[1].epsilon_nano < nano:
            whole += 1
        return PrivacyLoss(whole)

    def parts(self, loss: PrivacyLoss, trials: Trials) -> Parts:
        """The loss of the margins, of all trials and of the last iterations: equal shares each."""
        all_of_them = self.releases(trials)
        margins, rest = loss.divided(Fraction(1, all_of_them))
        if not trials.all:
            return Parts(margins, PrivacyLoss(0), rest)
        tried, last = rest.divided(Fraction(trials.all, all_of_them - 1))
        return Parts(margins, tried, last)

    def work(self, loss: PrivacyLoss) -> Work:
        """The public work of a clustering at ``loss``."""
        for_metric, rest = self.shares(loss)
        rows, values = row_bound(self.dataset), sum(len(one.levels) for one in self.attributes)
        numbers = values * (values + self.clusters) * (GAUSSIAN_WORK if loss.unpriced else 1)
        of_row = ROW + len(self.attributes) * (self.clusters + ATTRIBUTE)
        units = rows * of_row + numbers
        learned = NOTHING if self.metric is None else self.metric.work(for_metric)
        count = self.releases(self.trials(rest))
        return together(learned, work("clusters", count * units, count))

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

    def most_squares(self, bits: int) -> int:
        """A public bound on what one change adds to the squares of sums, in squared grid steps.

        One-hot codes have one coordinate of 1 for each attribute. The points of a learned metric
        are at most 1 from the origin of their tables, before each coordinate is rounded.
        """
        if self.metric is None:
            return (self.moves * len(self.attributes)) << (2 * bits)
        longest = (1 << bits) + isqrt(sum(self.metric.levels)) + 1
        # Replacing one record within a cluster moves its sums by the difference of the two records'
        # vectors of coordinates. The difference is at most twice as long as the longest vector, so
        # its square is up to four times as large.
        return (4 if self.moves > 1 else 1) * len(self.attributes) * longest**2

    def bits_at(self, loss: PrivacyLoss) -> int:
        """The bits of a coordinate where all iterations and margins have this loss together.

        Raises: UnsupportedQuery if the noise is outside of exact arithmetic.
        """
        if not loss.unpriced:
            return self.bits
        steps = self._iteration_steps(loss, self.trials(loss))
        least = min(steps, key=lambda step: step.loss.rho_femto).loss
        if self.metric is None:
            Deviations.of(least, self.most_squares(0), 0, self.moves)
            # Without learned distances every coordinate is 0 or 1 and needs no digits after the
            # point.
            return 0
        for bits in range(self.bits, COARSEST_OF_WIDE - 1, -1):
            with suppress(UnsupportedQuery):
                Deviations.of(least, self.most_squares(bits), bits, self.moves)
                return bits
        raise UnsupportedQuery("rho is too small for Gaussian noise in exact arithmetic")

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
        metric, rest = self.shares(loss)
        steps = self._iteration_steps(rest, self.trials(rest))
        self.bits_at(rest)
        return steps if self.metric is None else (*self.metric.steps(metric), *steps)

    def _iteration_steps(self, loss: PrivacyLoss, trials: Trials) -> tuple[Step, ...]:
        law = "Gaussian noise: " if loss.unpriced else ""
        what = f"{law}an iteration: noisy count and sums of every cluster"
        if self.initial is not None:
            return self._checked(repeated(what, loss, self.iterations))
        parts = self.parts(loss, trials)
        margin_law(parts.margins, self.moves * len(self.attributes))
        counts = f"{law}noisy counts of all values, to draw centres from"
        margins = Step(counts, parts.margins)
        last = self._checked(repeated(what, parts.iterations, self.last(trials)))
        if not trials.all:
            return (margins, *last)
        tried = repeated(f"one of {trials.starts} starts, {what}", parts.trials, trials.all)
        return (margins, *self._checked(tried), *last)

    def _checked(self, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        """The steps of iterations, if the noise of each is in the range of exact arithmetic.

        ``bits_at`` checks Gaussian noise.
        """
        for step in steps:
            if not step.loss.unpriced:
                Rates.of(step.loss, self.most_reach << self.bits, self.bits, self.moves)
        return steps

    def count_noise_scale(self, loss: PrivacyLoss) -> float:
        """A bound on the scale of the noise on the count of a cluster, in records."""
        rest, count = self.shares(loss)[1], self.iterations
        if self.initial is None:
            trials = self.trials(rest)
            rest, count = self.parts(rest, trials).iterations, self.last(trials)
        share, *_ = rest.shares(count)
        if share.unpriced:
            bits = self.bits_at(self.shares(loss)[1])
            noise = Deviations.of(share, self.most_squares(bits), bits, self.moves)
            return sqrt(noise.counts.square)
        rates = Rates.of(share, self.most_reach << self.bits, self.bits, self.moves)
        return float(1 / rates.counts.exponent())


def participants(dataset: Dataset, names: tuple[str, ...] | None) -> tuple[Attribute, ...]:
    """The attributes with these names, or all but the class attribute, in the domain's order."""
    row_bound(dataset)
    chosen = plan.participants(dataset, names)
    if not chosen:
        raise UnsupportedQuery("clustering needs an attribute beside the class attribute")
    return chosen
