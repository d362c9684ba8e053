"""Discrete and rounded Laplace: laws as rationals, and chi-squares of 10⁶ draws.

Each of the fourteen samples is rejected below 10⁻⁶ in either of two parts (sign, absolute value).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from mechanisms.model.executor import Inline
from mechanisms.noise.discrete_laplace import discrete_laplace, discrete_laplace_probability
from mechanisms.noise.rate import Rate
from mechanisms.noise.rounded_laplace import rounded_laplace, rounded_laplace_probability
from tests.support.randomness import SeededRandomness
from tests.unit.mechanisms.noise.chi_square import FALSE_ALARM, base, geometric_p_value, p_value
from tests.unit.mechanisms.noise.rates import NAMES, RATES

DRAWS = 10**6
each_rate = pytest.mark.parametrize("rate", RATES, ids=NAMES)


@each_rate
def test_discrete_laplace_has_its_law(rate: Rate) -> None:
    """|d| given d > 0 is 1 + geometric; the chance of each sign is that of the law."""
    values = np.arange(DRAWS)
    noise = discrete_laplace(values, rate, SeededRandomness(1), Inline()) - values
    zero = discrete_laplace_probability(0, base(rate))
    rounded = Fraction(0) if zero * DRAWS < 5 else zero
    signs = [np.count_nonzero(noise < 0), np.count_nonzero(noise > 0)]
    if rounded:
        signs.append(np.count_nonzero(noise == 0))
    law = [(1 - rounded) / 2] * 2 + [rounded] * bool(rounded)
    assert p_value(np.array(signs), law) > FALSE_ALARM
    assert geometric_p_value(np.abs(noise[noise != 0]) - 1, rate) > FALSE_ALARM


@each_rate
def test_rounded_laplace_has_its_law(rate: Rate) -> None:
    """G and −1 − G evenly."""
    values = np.full(DRAWS, -(2**61))
    noise = rounded_laplace(values, rate, SeededRandomness(2), Inline()) - values
    negative = noise < 0
    assert p_value(np.bincount(negative), [Fraction(1, 2)] * 2) > FALSE_ALARM
    assert geometric_p_value(np.where(negative, -1 - noise, noise), rate) > FALSE_ALARM


@pytest.mark.parametrize("p", [Fraction(1, 3), Fraction(9, 10)])
def test_laws_sum_to_one(p: Fraction) -> None:
    assert sum(discrete_laplace_probability(d, p) for d in range(-30, 31)) == 1 - 2 * p**31 / (
        1 + p
    )
    assert sum(rounded_laplace_probability(d, p) for d in range(-30, 30)) == 1 - p**30


@pytest.mark.parametrize("p", [Fraction(1, 3), Fraction(9, 10)])
def test_discrete_laplace_is_private_and_no_more(p: Fraction) -> None:
    """Neighbours move a count by D: the ratio is p^−D at most, attained, and not p^−(D − 1)."""
    law = {d: discrete_laplace_probability(d, p) for d in range(-20, 21)}
    for moved in (1, 2, 5):
        worst = max(law[d] / law[d - moved] for d in range(-15, 21))
        assert worst == p**-moved


def test_coarse_noise_is_finer_noise_and_more() -> None:
    """The vector of the theory: base 3/4 is base 1/2 plus, with a chance of 5/6, base 3/4."""
    coarse, fine = Fraction(3, 4), Fraction(1, 2)
    stays = fine * (1 - coarse) ** 2 / (coarse * (1 - fine) ** 2)
    assert stays == Fraction(1, 6)

    def more(d: int) -> Fraction:
        return stays * (d == 0) + (1 - stays) * discrete_laplace_probability(d, coarse)

    reach = range(-150, 151)
    for d in range(6):
        both = sum(discrete_laplace_probability(d - one, fine) * more(one) for one in reach)
        assert abs(both - discrete_laplace_probability(d, coarse)) < Fraction(1, 10**15)


@pytest.mark.parametrize("scale", [0.3, 1.0, 17.5])
def test_rounded_laplace_is_the_floor_of_laplace(scale: float) -> None:
    def below(x: float) -> float:
        return math.exp(x / scale) / 2 if x < 0 else 1 - math.exp(-x / scale) / 2

    p = Fraction(math.exp(-1 / scale))
    for d in range(-40, 40):
        exact = float(rounded_laplace_probability(d, p))
        assert math.isclose(exact, below(d + 1) - below(d), rel_tol=1e-9, abs_tol=1e-15)
