"""The threshold is the least whose exact δ is within the charge."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting.privacy_loss import ATTO, NANO
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.noise.discrete_laplace import discrete_laplace_probability
from mechanisms.noise.rate import Rate
from mechanisms.noise.threshold import least_threshold, release_probability


def exact_delta(rate: Rate, threshold: int) -> mpmath.mpf:
    p = mpmath.exp(-mpmath.mpf(rate.a) / rate.b)
    return p ** (threshold - 1) / (1 + p)


def test_the_printed_example() -> None:
    # With p = e^−1 and δ = 10^-6, the threshold 15 is the least: p^14 = 8.3·10^-7 ≤ 10^-6·(1 + p) <
    # p^13.
    assert least_threshold(Rate.of_counts(NANO), ATTO // 10**6) == 15


@given(epsilon=st.integers(10**5, 10**13), delta=st.integers(1, ATTO - 1))
def test_the_threshold_is_the_least_that_keeps_delta(epsilon: int, delta: int) -> None:
    rate = Rate.of_counts(epsilon)
    threshold = least_threshold(rate, delta)
    with mpmath.workdps(60):
        allowed = mpmath.mpf(delta) / ATTO
        assert exact_delta(rate, threshold) <= allowed
        assert threshold == 2 or exact_delta(rate, threshold - 1) > allowed


def test_the_formula_is_the_tail_of_the_noise() -> None:
    p = Fraction(1, 3)
    for threshold in range(2, 6):
        inside = sum(discrete_laplace_probability(z, p) for z in range(threshold - 1))
        tail = (1 - (2 * inside - discrete_laplace_probability(0, p))) / 2
        assert release_probability(threshold, p) == tail


def test_there_is_no_threshold_without_delta() -> None:
    with pytest.raises(UnsupportedQuery):
        least_threshold(Rate.of_counts(NANO), 0)
