"""Errors of noise at a confidence, compared with the exact law; no run is random."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath.ctx_mp import MPContext

from mechanisms.noise import unequal_sums
from mechanisms.noise.discrete_laplace import likely_error
from mechanisms.noise.rate import Rate
from mechanisms.noise.unequal_sums import likely_sum_error

NANO = 10**9
digits = MPContext()
digits.dps = 50


def within(rate: Rate, error: int) -> object:
    """P(|noise| ≤ error) with fifty digits."""
    p = digits.exp(-digits.mpf(rate.a) / rate.b)
    return 1 - 2 * p ** (error + 1) / (1 + p)


@given(
    epsilon=st.integers(1, 10**12),
    sensitivity=st.integers(1, 1000),
    confidence=st.sampled_from([0.5, 0.9, 0.95, 0.999]),
    cells=st.sampled_from([1, 2, 37_700, 10**6]),
)
def test_the_interval_is_the_shortest_of_at_least_the_confidence(
    epsilon: int, sensitivity: int, confidence: float, cells: int
) -> None:
    rate = Rate.of_counts(epsilon, sensitivity)
    error = likely_error(rate, confidence, cells)
    enough = digits.mpf(repr(confidence))
    assert within(rate, error) ** cells >= enough
    assert error == 0 or within(rate, error - 1) ** cells < enough


def convolved(noises: dict[Rate, int], reach: int) -> list[float]:
    """P(|sum| ≤ 0), P(|sum| ≤ 1), … by adding one noise after another."""
    law = np.array([1.0])
    for rate, count in noises.items():
        p = float(digits.exp(-digits.mpf(rate.a) / rate.b))
        one = (1 - p) / (1 + p) * p ** np.abs(np.arange(-reach, reach + 1))
        for _ in range(count):
            law = np.convolve(law, one)
    middle = len(law) // 2
    return [float(law[middle - m : middle + m + 1].sum()) for m in range(middle)]


SUMS = [
    {Rate.of_counts(NANO): 2},
    {Rate.of_counts(NANO): 2, Rate.of_counts(3 * NANO): 3},
    {Rate.of_counts(NANO // 5): 1, Rate.of_counts(NANO): 9, Rate.of_counts(20 * NANO): 4},
    {Rate.of_counts(NANO // 10): 6},
]


@pytest.mark.parametrize("noises", SUMS)
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_the_error_of_a_sum_is_the_least(noises: dict[Rate, int], confidence: float) -> None:
    law = convolved(noises, 300)
    error = likely_sum_error(noises, confidence)
    assert law[error] >= confidence - 1e-12
    assert law[error - 1] < confidence


def test_one_noise_is_a_sum_too() -> None:
    rate = Rate.of_counts(NANO // 7)
    assert likely_sum_error({rate: 1}, 0.95) == likely_error(rate, 0.95)


@pytest.mark.parametrize("noises", SUMS)
def test_a_coarse_law_is_wider_and_never_narrower(
    noises: dict[Rate, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = likely_sum_error(noises, 0.95)
    monkeypatch.setattr(unequal_sums, "POINTS", 256)
    unequal_sums._likely_sum_error.cache_clear()
    coarse = likely_sum_error(noises, 0.95)
    unequal_sums._likely_sum_error.cache_clear()
    assert exact <= coarse <= 2 * exact + 16


def test_very_wide_sums_are_quick_and_close_to_the_continuous_law() -> None:
    """The sum of two Laplace noises of scale 1 exceeds x with probability e^−x·(1 + x/2)."""
    rate = Rate.of_counts(1000)
    error = Fraction(likely_sum_error({rate: 2}, 0.95), NANO // 1000)
    x = digits.findroot(lambda x: digits.exp(-x) * (1 + x / 2) - 0.05, 4)
    assert float(x) <= float(error) <= 1.01 * float(x)
