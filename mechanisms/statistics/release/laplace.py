"""Laplace noise by the global sensitivity; its scale is equal for all records, so it is public."""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import ceil

from accounting.privacy_loss import NANO, PrivacyLoss
from accounting.rho import LaplaceNoise, RhoBound
from mechanisms.model.context import QueryContext
from mechanisms.model.domains import Dataset
from mechanisms.model.number import CONFIDENCE, Number
from mechanisms.model.randomness import Randomness
from mechanisms.model.work import NOTHING, Work, together, work
from mechanisms.noise.discrete_laplace import add_discrete_laplace, likely_error
from mechanisms.noise.rate import Rate
from mechanisms.statistics.grid import Plan, rate_at_most
from mechanisms.statistics.mean_interval import NoisyPair, mean_interval
from mechanisms.statistics.release.added_noise import AddedNoise, Plans, single_noise
from mechanisms.statistics.release.mechanism import WIDTHS, Accuracy, Answer, share, significant
from mechanisms.statistics.statistic import Measurement, Part, Statistic
from mechanisms.statistics.sums import Mean

Interval = tuple[Fraction, Fraction]


class Laplace(AddedNoise):
    """ε-DP by discrete Laplace noise on the grid of each part, at an equal share of the loss."""

    name = "laplace"
    title = "Laplace"
    description = (
        "Adds noise of scale GS/ε, with GS the most that one change moves the statistic in any "
        "dataset. A statistic of two parts gives each half of the loss."
    )
    source = "Dwork, McSherry, Nissim, Smith 2006; Ghosh, Roughgarden, Sundararajan 2009"

    noun = "Laplace noise"

    def accuracy(self, statistic: Statistic, dataset: Dataset, loss: PrivacyLoss) -> Accuracy:
        scale = self.noise_scale(statistic, dataset, loss)
        if scale is None:
            return {
                "confidence": CONFIDENCE,
                "parts": [
                    {"what": part.what, "error": significant(float(_scale(spent, plan)) * WIDTHS)}
                    for part, spent, plan in self.plans(statistic, dataset, loss)
                ],
                "explanation": (
                    "With this probability each part is within its `error` of the true one; that "
                    "of the value made of them depends on the records."
                ),
            }
        return {
            "confidence": CONFIDENCE,
            "error": significant(float(scale) * WIDTHS),
            "noise_scale": significant(float(scale)),
            "explanation": (
                "With this probability the value is within `error` of the true one: 0 ± `error` "
                "is a confidence interval of the noise, which does not depend on the records."
            ),
        }

    def noise_scale(
        self, statistic: Statistic, dataset: Dataset, loss: PrivacyLoss
    ) -> Fraction | None:
        parts = self.plans(statistic, dataset, loss)
        if len(parts) != 1:
            return None
        ((_, spent, plan),) = parts
        # A statistic of one part is this part times a public factor. A mean over a public number of
        # rows, for example, is a sum times 1 / rows. The factor scales the noise too.
        return _scale(spent, plan) * statistic.factor(dataset)

    def answer(self, statistic: Statistic, context: QueryContext) -> Answer:
        dataset = context.dataset
        plans = self.plans(statistic, dataset, context.loss)
        released = self.released(plans, context)
        intervals = [
            _interval(part, dataset, plan, spent, value)
            for (part, spent, plan), value in zip(plans, released, strict=True)
        ]
        raw = statistic.raw(dataset, released)
        value = statistic.inside(dataset, raw)
        low, high = _ends(statistic, dataset, plans, released, intervals[0])
        number = Number(value, min(low, value), max(high, value), None if value == raw else raw)
        if len(plans) == 1:
            return Answer(number)
        assert isinstance(statistic, Mean), "only means have several parts"
        numbers = [Number(one, *ends) for one, ends in zip(released, intervals, strict=True)]
        origin = statistic.origin(dataset, plans[0][2])
        return Answer(number, dict(zip(("sum", "count"), numbers, strict=True)), {"sum": origin})

    def loss_reaching(self, statistic: Statistic, dataset: Dataset, error: float) -> PrivacyLoss:
        one = PrivacyLoss(NANO)
        scale = self.noise_scale(statistic, dataset, one)
        if scale is None:
            return super().loss_reaching(statistic, dataset, error)
        # Noise scales are rounded up by a factor of at most 1 + 2⁻²⁰. The loss is raised by a
        # little more, so that the error stays within the target.
        return PrivacyLoss(max(1, ceil(float(scale) * WIDTHS * (1 + 2e-6) * NANO / error)))

    def noise(
        self, measured: Measurement, plan: Plan, loss: PrivacyLoss, randomness: Randomness
    ) -> int:
        return single_noise(add_discrete_laplace, _rate(loss, plan.cap), randomness)

    def rho_bound(self, loss: PrivacyLoss, plan: Plan) -> RhoBound:
        if not plan.cap:
            return super().rho_bound(loss, plan)
        return LaplaceNoise(_rate(loss, plan.cap).exponent(), plan.cap, plan.cap)

    def work(self, statistic: Statistic, dataset: Dataset, loss: PrivacyLoss) -> Work:
        parts = [part.work(dataset) for part, _, _ in self.plans(statistic, dataset, loss)]
        # Only a mean has several parts, a sum and a count. The ends of its interval are searched,
        # which is work of its own.
        interval = work("intervals of means", 0) if len(parts) > 1 else NOTHING
        return together(work("laplace", 0, len(parts)), interval, *parts)

    def plans(self, statistic: Statistic, dataset: Dataset, loss: PrivacyLoss) -> Plans:
        plans = super().plans(statistic, dataset, loss)
        for _, spent, plan in plans:
            if plan.cap:
                # Called only for its error: it refuses noise rates beyond exact arithmetic.
                _rate(spent, plan.cap)
        return plans


@lru_cache(maxsize=1024)
def _rate(loss: PrivacyLoss, cap: int) -> Rate:
    return rate_at_most(share(loss) / cap)


@lru_cache(maxsize=1024)
def _scale(loss: PrivacyLoss, plan: Plan) -> Fraction:
    """The scale of the noise of a part; a part that never changes gets no noise."""
    return plan.step / _rate(loss, plan.cap).exponent() if plan.cap else Fraction(0)


@lru_cache(maxsize=1024)
def _error(loss: PrivacyLoss, plan: Plan) -> Fraction:
    """The error of a part at ``CONFIDENCE``; a part that never changes has none."""
    return plan.step * (likely_error(_rate(loss, plan.cap), CONFIDENCE) if plan.cap else 0)


def _interval(
    part: Part, dataset: Dataset, plan: Plan, loss: PrivacyLoss, value: Fraction
) -> Interval:
    """The interval of the released number of a part, which allows for rounding down."""
    error = _error(loss, plan)
    return value - error, value + error + part.excess(dataset, plan)


def _ends(
    statistic: Statistic,
    dataset: Dataset,
    plans: Plans,
    released: Sequence[Fraction],
    first: Interval,
) -> Interval:
    """The interval of a statistic, given that of its first part."""
    if isinstance(statistic, Mean):
        if not plans[0][2].cap:
            # Both public bounds of the attribute are rounded to the same grid step, so the released
            # sum is constant. The mean may lie anywhere between the bounds.
            return statistic.limits(dataset)
        if len(plans) > 1:
            origin = statistic.origin(dataset, plans[0][2])
            return _mean_ends(statistic, dataset, plans, released, origin)
    low, high = first
    if not isinstance(statistic, Part):
        # The statistic is computed from a single released part. The answer is a public linear
        # function of the part, and the same function gives the interval's ends.
        raw, factor = statistic.raw(dataset, released), statistic.factor(dataset)
        low, high = (raw + (end - released[0]) * factor for end in first)
    return statistic.inside(dataset, low), statistic.inside(dataset, high)


def _mean_ends(
    mean: Mean, dataset: Dataset, plans: Plans, released: Sequence[Fraction], origin: Fraction
) -> Interval:
    (_, spent, total), (_, spent_on_count, count) = plans
    pair = NoisyPair(
        total=float(released[0]),
        count=float(released[1]),
        origin=float(origin),
        total_rate=_rate(spent, total.cap),
        total_step=float(total.step),
        count_rate=_rate(spent_on_count, count.cap),
        count_step=float(count.step),
    )
    lower, upper = mean.limits(dataset)
    low, high = mean_interval(pair, float(lower), float(upper), CONFIDENCE)
    return Fraction(low), Fraction(high)
