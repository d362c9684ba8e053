"""The interval of a mean covers it by the exact law of both noises; no run is random."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from mechanisms.noise.rate import Rate
from mechanisms.statistics.mean_interval import (
    NoisyPair,
    exceeding_probability,
    mean_interval,
    tail,
)

CONFIDENCE = 0.95


def law(rate: Rate, reach: int) -> tuple[np.ndarray, np.ndarray]:
    p = math.exp(-rate.a / rate.b)
    noise = np.arange(-reach, reach + 1)
    return noise, (1 - p) / (1 + p) * p ** np.abs(noise)


@pytest.mark.parametrize("weight", [0.0, 1e-9, 0.01, 0.3, 1.0, 2.5, 40.0])
@pytest.mark.parametrize("decay", [0.02, 0.3, 1.0, 5.0])
def test_the_tail_is_that_of_the_law(weight: float, decay: float) -> None:
    rate = Rate(round(decay * 1000), 1000)
    counts, chances = law(rate, 3000)
    for distance in (0.1, 1.0, 3.0, 12.0):
        away = np.abs(weight * counts)
        inside = away <= distance
        with np.errstate(over="ignore"):
            beyond = np.where(
                inside,
                (np.exp(away - distance) + np.exp(-away - distance)) / 2,
                1 - (np.exp(distance - away) - np.exp(-distance - away)) / 2,
            )
        assert tail(distance, weight, decay) == pytest.approx(float(chances @ beyond), rel=1e-9)


#: Cases of a mean: the true sum relative to an origin, the true count, and the scales of the noise
#: on both.
WORLDS = [(300.0, 100, 40, 1.0), (-40.0, 12, 40, 2.0), (0.0, 0, 40, 1.0), (900.0, 60, 40, 4.0)]


@pytest.mark.parametrize(("total", "count", "total_scale", "count_scale"), WORLDS)
@pytest.mark.long
def test_coverage_is_that_of_the_law(
    total: float, count: int, total_scale: int, count_scale: float
) -> None:
    """The chance that the true mean is in the interval, summed over all pairs of noises."""
    total_rate, count_rate = Rate(1, total_scale), Rate(10, round(10 * count_scale))
    origin, lower, upper = 50.0, 0.0, 100.0
    shift = total / count if count else 0.0
    covered = 0.0
    x, x_chances = law(total_rate, 400)
    y, y_chances = law(count_rate, round(16 * count_scale))
    rng = np.random.default_rng(3)
    for (noise, chance), (extra, weight) in product(
        zip(x.tolist(), x_chances, strict=True), zip(y.tolist(), y_chances, strict=True)
    ):
        pair = NoisyPair(
            total + noise, float(count + extra), origin, total_rate, 1.0, count_rate, 1.0
        )
        fits = exceeding_probability(pair, shift) > 1 - CONFIDENCE
        covered += chance * weight * fits
        if fits and rng.random() < 0.01:
            low, high = mean_interval(pair, lower, upper, CONFIDENCE)
            assert low <= origin + shift <= high
    assert CONFIDENCE <= covered / (x_chances.sum() * y_chances.sum()) <= CONFIDENCE + 0.012


def pair_of(total: float, count: float, epsilon: int = 10**8) -> NoisyPair:
    """Numbers of 0 to 100 on a grid of thousandths, at this ε for each of both."""
    total_rate = Rate.of_counts(epsilon, 50_000)
    return NoisyPair(total, count, 50.0, total_rate, 0.001, Rate.of_counts(epsilon), 1.0)


def test_an_interval_narrows_with_rows_and_stays_inside_the_bounds() -> None:
    low, high = mean_interval(pair_of(0.0, 10_000), 0.0, 100.0, CONFIDENCE)
    assert 49 < low < 50 < high < 51
    assert high - low < 0.5
    assert mean_interval(pair_of(0.0, 3), 0.0, 100.0, CONFIDENCE) == (0.0, 100.0)
    assert mean_interval(pair_of(0.0, -9), 0.0, 100.0, CONFIDENCE) == (0.0, 100.0)


def test_an_end_at_a_bound_is_the_bound() -> None:
    low, high = mean_interval(pair_of(-49_990.0, 1000), 0.0, 100.0, CONFIDENCE)
    assert low == 0.0
    assert 0 < high < 4


@pytest.mark.parametrize(("total", "bound"), [(1e9, 100.0), (-1e9, 0.0)])
def test_where_no_mean_fits_the_interval_is_the_closest_bound(total: float, bound: float) -> None:
    assert mean_interval(pair_of(total, 100), 0.0, 100.0, CONFIDENCE) == (bound, bound)


def test_a_coarse_count_widens_the_interval() -> None:
    fine = pair_of(5000.0, 1000)
    coarse = NoisyPair(5000.0, 1000, 50.0, fine.total_rate, 0.001, fine.count_rate, 8.0)
    one, two = (mean_interval(pair, 0.0, 100.0, CONFIDENCE) for pair in (fine, coarse))
    assert two[0] < one[0] < one[1] < two[1]
