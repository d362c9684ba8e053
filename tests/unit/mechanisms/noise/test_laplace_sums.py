"""The law of sums of discrete Laplace noise, against convolutions and rationals."""

from __future__ import annotations

from fractions import Fraction
from math import comb, exp, log

import numpy as np
import pytest

from mechanisms.noise.discrete_laplace import likely_error
from mechanisms.noise.laplace_sums import half_width, tail, variance
from mechanisms.noise.rate import Rate

#: The rate λ = ln 2 of Laplace noise, for which p = e^−λ is 1/2 up to the rounding of a double.
HALF = Rate.of_scale(Fraction(1 / log(2)))
MISS = Fraction(1, 20)


def rational(terms: int, d: int) -> Fraction:
    """P(X = d) at p = 1/2 by the series of two negative binomial sums, up to 2^−120."""
    p = Fraction(1, 2)
    series = sum(
        comb(j + d + terms - 1, terms - 1) * comb(j + terms - 1, terms - 1) * p ** (2 * j + d)
        for j in range(120)
    )
    return (1 - p) ** (2 * terms) * series


@pytest.mark.parametrize("terms", [1, 2, 3, 8])
def test_tails_are_sums_of_the_series(terms: int) -> None:
    assert tail(HALF, terms, 0) == pytest.approx(float((1 + rational(terms, 0)) / 2), rel=1e-12)
    for d in (1, 2, 5, 9):
        rest = sum((rational(terms, e) for e in range(d, 90)), Fraction(0))
        assert tail(HALF, terms, d) == pytest.approx(float(rest), rel=1e-10)


def test_the_vectors_of_the_theory() -> None:
    assert 2 * tail(HALF, 1, 3) == pytest.approx(1 / 6)
    assert tail(HALF, 2, 0) - tail(HALF, 2, 1) == pytest.approx(5 / 27)
    assert tail(HALF, 2, 1) - tail(HALF, 2, 2) == pytest.approx(4 / 27)


@pytest.mark.parametrize("terms", [1, 2, 7, 40])
@pytest.mark.parametrize("nano", [2 * 10**8, 10**9, 4 * 10**9])
def test_widths_are_the_least_that_hold(terms: int, nano: int) -> None:
    p, support = exp(-nano / 10**9), np.arange(-400, 401)
    single = (1 - p) / (1 + p) * p ** np.abs(support)
    law = np.ones(1)
    for _ in range(terms):
        law = np.convolve(law, single)
    middle = len(law) // 2
    m = half_width(Rate.of_counts(nano), terms, MISS)
    assert law[middle - m : middle + m + 1].sum() >= 0.95
    assert m == 0 or law[middle - m + 1 : middle + m].sum() < 0.95


def test_many_terms_and_small_rates_keep_all_digits() -> None:
    """A sum of many noises is normal: 1.96 standard deviations hold 95 %."""
    for nano, terms in ((10**9, 20_000), (1000, 5000), (10**6, 3000)):
        rate = Rate.of_counts(nano)
        deviations = half_width(rate, terms, MISS) / (terms * variance(rate)) ** 0.5
        assert deviations == pytest.approx(1.95996, abs=3e-3)
    assert half_width(Rate.of_counts(10**12), 1000, MISS) == 0


@pytest.mark.parametrize("miss", [Fraction(1, 20), Fraction(1, 3), Fraction(1, 10**9)])
@pytest.mark.parametrize("nano", [10**3, 10**8, 10**9, 9 * 10**9])
def test_the_interval_of_one_noise_is_exact(nano: int, miss: Fraction) -> None:
    """It is that of a released number, and the next narrower one holds too seldom."""
    rate = Rate.of_counts(nano)
    m, step = half_width(rate, 1, miss), rate.a / rate.b

    def beyond(width: int) -> float:
        return 2 * exp(-step * (width + 1)) / (1 + exp(-step))

    assert beyond(m) <= miss * (1 + 1e-9)
    assert m == 0 or beyond(m - 1) > miss * (1 - 1e-9)
    assert half_width(rate, 1, MISS) == likely_error(rate, 0.95)
