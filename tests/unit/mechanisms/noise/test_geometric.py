"""The law of geometric noise: chi-squares of 10⁶ draws, and what they catch.

Every sample is rejected below 10⁻⁶; the seven rates in two block sizes are fourteen samples, so a
correct sampler fails for 1.4·10⁻⁵ of all seeds. The seed is fixed: the result never changes.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numba
import numpy as np
import pytest

from mechanisms.model.executor import Inline
from mechanisms.noise.addition import Integers, add_noise, add_noise_in_blocks
from mechanisms.noise.coins import ONE, ZERO, below, bernoulli_exp, geometric, mask, quotient
from mechanisms.noise.geometric import add_geometric, geometric_probability
from mechanisms.noise.rate import Rate
from tests.support.randomness import SeededRandomness
from tests.unit.mechanisms.noise.chi_square import FALSE_ALARM, geometric_p_value
from tests.unit.mechanisms.noise.rates import NAMES, RATES

DRAWS = 10**6
TINY = 24


@pytest.mark.parametrize("rate", RATES, ids=NAMES)
def test_the_noise_has_its_law(rate: Rate) -> None:
    noise = add_noise(add_geometric, zeros(DRAWS), rate, SeededRandomness(1), Inline())
    assert geometric_p_value(noise, rate) > FALSE_ALARM
    assert geometric_p_value(noise, off_by_three_percent(rate)) < FALSE_ALARM


@pytest.mark.parametrize("rate", RATES, ids=NAMES)
def test_tiny_blocks_keep_the_law(rate: Rate) -> None:
    noise = zeros(DRAWS)
    add_noise_in_blocks(add_geometric, noise, rate, SeededRandomness(2).stream(), TINY)
    assert geometric_p_value(noise, rate) > FALSE_ALARM


def test_a_cut_draw_that_starts_afresh_is_caught() -> None:
    """Long draws are large noise and are cut more often, so the mean falls."""
    rate = RATES[1]
    noise = zeros(DRAWS // 5)
    _redrawing_cut_draws(noise, rate, TINY)
    assert geometric_p_value(noise, rate) < FALSE_ALARM
    assert 0.84 < noise.mean() * float(rate.exponent()) < 0.92


def test_a_clipped_run_is_caught() -> None:
    rate = RATES[2]
    noise = _drawn_by(_clipped, rate)
    assert geometric_p_value(noise, rate) < FALSE_ALARM
    # Noise that is drawn in the same way but not clipped follows the law.
    assert geometric_p_value(_drawn_by(geometric, rate), rate) > FALSE_ALARM


@pytest.mark.parametrize("p", [Fraction(1, 3), Fraction(9, 10)])
def test_the_law_is_one_of_noise_that_forgets(p: Fraction) -> None:
    assert geometric_probability(-1, p) == 0
    assert sum(geometric_probability(g, p) for g in range(40)) == 1 - p**40
    assert geometric_probability(7, p) / geometric_probability(6, p) == p


def zeros(count: int) -> Integers:
    return np.zeros(count, dtype=np.int64)


def off_by_three_percent(rate: Rate) -> Rate:
    return (
        Rate(rate.a * 103, rate.b * 100) if rate.b < 10**16 else Rate(rate.a * 103 // 100, rate.b)
    )


def _redrawing_cut_draws(noise: Integers, rate: Rate, size: int) -> None:
    """A wrong variant: the block after a cut draw does not begin with the cut words."""
    source = SeededRandomness(3).stream()
    a, b, keep = np.uint64(rate.a), np.uint64(rate.b), np.uint64(mask(rate.b))
    done = 0
    while done < noise.size:
        done, _ = add_geometric(noise, done, a, b, keep, source.words(size))


def _drawn_by(draw: Callable[..., Any], rate: Rate) -> Integers:
    @numba.njit
    def fill(noise, a, b, keep, words):  # type: ignore[no-untyped-def]
        at = 0
        for i in range(noise.size):
            value, at = draw(a, b, keep, words, at)
            noise[i] = np.int64(value)
        return at

    noise = zeros(DRAWS)
    words = SeededRandomness(4).stream().words(12 * noise.size)
    at = fill(noise, np.uint64(rate.a), np.uint64(rate.b), np.uint64(mask(rate.b)), words)
    assert 0 < at <= words.size
    return noise


@numba.njit
def _clipped(a, b, keep, words, at):  # type: ignore[no-untyped-def]
    """A wrong ``geometric`` whose runs stop at seven."""
    while True:
        u, at = below(b, keep, words, at)
        accepted, at = bernoulli_exp(u, b, keep, words, at)
        if accepted:
            break
    v = ZERO
    while True:
        more, at = bernoulli_exp(ONE, ONE, ZERO, words, at)
        if not more:
            return quotient(u, v, a, b), at
        if v < np.uint64(7):
            v += ONE
