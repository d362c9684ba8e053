"""The interval of a mean from a noisy sum and a noisy count, by the exact law of both noises.

Let S̃ = S + X and Ñ = N + Y, where S is the sum of x − o over N rows and X, Y are the noises. At
the true mean m = o + c the difference S̃ − c·Ñ equals X − c·Y. So m is in the interval exactly if
|S̃ − c·Ñ| is no larger than |X − c·Y| with probability above 1 − confidence. The interval is the
hull of all such m within the public bounds, and may be the bounds themselves.

X is Laplace noise of scale b on a grid of step γ, and Y is a whole number with P(Y = y) ∝ p^|y|.
Rounding X to its grid moves it by less than γ. The probability is then a sum of geometric series.
For information: floats decide no guarantee here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import exp, expm1, floor, isfinite

from mechanisms.noise.rate import Rate

#: The confidence interval holds every mean that agrees with the released sum and count. It is
#: computed by trying this many means between the public bounds, and by this many bisections for
#: each of its ends.
_POINTS, _REFINEMENTS = 129, 60
#: The allowed probability that the interval misses the mean is reduced by this share, to cover
#: rounding errors. This can only widen the interval.
_MARGIN = 1e-9


@dataclass(frozen=True)
class NoisyPair:
    """The released sum and count; steps are those of their grids, in the unit of the numbers.

    ``total`` estimates the sum of x − ``origin``. Each number may be rounded down by up to
    ``total_step``. A count on a grid of steps above 1 is rounded down by up to ``count_step`` − 1.
    """

    total: float
    count: float
    origin: float
    total_rate: Rate
    total_step: float
    count_rate: Rate
    count_step: float

    @cached_property
    def scale(self) -> float:
        """b, the scale of X."""
        return self.total_step / float(self.total_rate.exponent())

    @cached_property
    def decay(self) -> float:
        """−ln p, of Y."""
        return float(self.count_rate.exponent())


def mean_interval(
    pair: NoisyPair, lower: float, upper: float, confidence: float
) -> tuple[float, float]:
    """The ends of the interval, inside the public bounds ``lower`` < ``upper``.

    If no mean inside the bounds fits, both ends are the bound that fits best.
    """
    miss = (1 - confidence) * (1 - _MARGIN)

    def fits(mean: float) -> bool:
        return exceeding_probability(pair, mean - pair.origin) > miss

    points = [lower + (upper - lower) * i / (_POINTS - 1) for i in range(_POINTS)]
    if pair.count > 0:
        # The quotient of the released sum and count is the mean that agrees best with both, so it
        # is tried too. Otherwise a narrow interval between two of the other means would be missed.
        best = min(max(pair.origin + pair.total / pair.count, lower), upper)
        points = sorted({*points, best})
    fitting = [i for i, point in enumerate(points) if fits(point)]
    if not fitting:
        bound = _best_bound(pair, lower, upper)
        return bound, bound
    first, last = fitting[0], fitting[-1]
    low = points[0] if first == 0 else _end(fits, points[first], points[first - 1])
    high = points[-1] if last == len(points) - 1 else _end(fits, points[last], points[last + 1])
    # Each number was rounded down by less than a grid step, so the true mean may lie higher by up
    # to one step. The upper end of the interval is raised by this step.
    return low, min(high + pair.total_step, upper)


def _best_bound(pair: NoisyPair, lower: float, upper: float) -> float:
    """The bound whose difference from the released numbers is smaller."""
    return min(
        (lower, upper), key=lambda bound: abs(pair.total - (bound - pair.origin) * pair.count)
    )


def exceeding_probability(pair: NoisyPair, shift: float) -> float:
    """P(|X − c·Y| ≥ |S̃ − c·Ñ|) at c = ``shift``, rounded towards larger values."""
    difference = abs(pair.total - shift * pair.count)
    distance = difference - pair.total_step - abs(shift) * (pair.count_step - 1)
    if distance <= 0:
        return 1.0
    return tail(distance / pair.scale, abs(shift) * pair.count_step / pair.scale, pair.decay)


def tail(distance: float, weight: float, decay: float) -> float:
    """P(|Z + w·Y| ≥ t) for Laplace noise Z of scale 1 and Y discrete Laplace of rate ``decay``.

    ``distance`` is t, ``weight`` is w, and p is e to the minus rate: P(Y = y) is in proportion to
    p^|y|. By symmetry only y ≥ 0 is summed. Up to y = K = ⌊t / w⌋ the mean of Z + w·y lies inside
    ±t, and outside of it from K + 1 on.
    """
    if weight == 0 or not isfinite(distance / weight):
        return exp(-distance)
    inside = floor(distance / weight)
    growth = weight - decay
    # This computes P(|Z + w·Y| ≥ t) for Laplace noise Z and discrete noise Y, summed over the
    # values y of Y, whose probability is in proportion to p^|y|. As long as w·y is at most t, that
    # is for y ≤ K, these values form two geometric series: Σ over 1 ≤ y ≤ K of p^y·(e^(w·y − t) +
    # e^(−w·y − t)).
    rising = _series(growth, inside, -distance)
    falling = _series(-weight - decay, inside, -distance)
    # From y = K + 1 on, w·y exceeds t. These values y of the discrete noise form geometric series
    # too: Σ over y > K of p^y·(2 − e^(t − w·y) + e^(−t − w·y)).
    after = -decay * (inside + 1)
    beyond = 2 * exp(after) / -expm1(-decay)
    first = after - weight * (inside + 1)
    beyond -= (exp(first + distance) - exp(first - distance)) / -expm1(-decay - weight)
    none = -expm1(-decay) / (1 + exp(-decay))
    return min(none * (exp(-distance) + rising + falling + beyond), 1.0)


def _series(growth: float, terms: int, start: float) -> float:
    """Σ over 1 ≤ y ≤ ``terms`` of e^(start + growth·y); no term is above 1."""
    if terms == 0:
        return 0.0
    if abs(growth) < 1e-12:
        return terms * exp(start)
    if growth < 0:
        return exp(start + growth) * expm1(growth * terms) / expm1(growth)
    return exp(start + growth * terms) * expm1(-growth * terms) / expm1(-growth)


def _end(fits: Callable[[float], bool], inside: float, outside: float) -> float:
    """The point between both at which ``fits`` becomes False, on the outer side."""
    for _ in range(_REFINEMENTS):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if fits(middle) else (inside, middle)
    return outside
