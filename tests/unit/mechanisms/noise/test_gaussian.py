"""Discrete Gaussian noise: the law of one try in closed form, twins, blocks and chi-squares.

Each of the samples is rejected below 10⁻⁶ in either of two parts (sign, absolute value).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath.ctx_mp import MPContext

from mechanisms.model.errors import NoiseOverflow, UnsupportedQuery
from mechanisms.model.executor import Inline
from mechanisms.noise.addition import add_noise_in_blocks
from mechanisms.noise.coins import EXHAUSTED, mask
from mechanisms.noise.discrete_gaussian import (
    GRID,
    MOST_STEPS,
    Deviation,
    add_discrete_gaussian,
    discrete_gaussian,
    half_square,
)
from tests.support.randomness import GivenWords, SeededRandomness
from tests.unit.mechanisms.noise import twins
from tests.unit.mechanisms.noise.chi_square import FALSE_ALARM, FEWEST, p_value

digits = MPContext()
digits.dps = 80
U = np.uint64
#: Standard deviations σ of the noise, in steps of 1/1024: the smallest and the largest, and some
#: between them, also around σ = 1.
STEPS = (1, 300, GRID - 1, GRID, 1500, 7253, 10**6, MOST_STEPS)
#: A try of the sampler accepts with the probability exp(−c), where c is this function of a whole
#: number m and a fraction x. In the correct law, c is (m + x)²/2.
Coins = Callable[[int, object], object]


def exponents(m: int, x: object) -> object:
    return digits.mpf(m * m) / 2 + m * x + x * x / 2  # type: ignore[operator]


def one_try(noise: int, steps: int, scale: int, coins: Coins = exponents) -> object:
    """log of the chance that one try proposes ``noise`` ≥ 0 and accepts it, up to a constant."""
    unit = steps * GRID * scale
    m, f = divmod(abs(noise * GRID**2 * scale - steps**2), unit)
    return -digits.mpf(noise) / scale - coins(m, digits.mpf(f) / unit)  # type: ignore[operator]


def worst(steps: int, scale: int, coins: Coins = exponents) -> float:
    """How far the law of one try is from exp(−y²/(2σ²)), in logarithms."""
    at_zero = one_try(0, steps, scale, coins)
    square = digits.mpf(steps) ** 2 / GRID**2
    return max(
        float(abs(one_try(y, steps, scale, coins) - at_zero + digits.mpf(y) ** 2 / (2 * square)))  # type: ignore[operator]
        for y in (1, 2, 3, 7, 1000, 1023 * scale)
    )


@pytest.mark.parametrize("steps", STEPS)
def test_one_try_has_the_law(steps: int) -> None:
    scale = Deviation(steps).b
    # The logarithms that are compared reach 10¹². There this bound demands 42 equal digits.
    assert worst(steps, scale) < 1e-30
    assert Deviation(steps).a == steps


def test_other_coins_have_another_law() -> None:
    """Known to fail: exp(−x) in place of the half square, and m coins in place of m²."""

    def whole(m: int, x: object) -> object:
        return digits.mpf(m * m) / 2 + m * x + x  # type: ignore[operator]

    def too_few(m: int, x: object) -> object:
        return digits.mpf(m) / 2 + m * x + x * x / 2  # type: ignore[operator]

    for steps in (300, 1500, 7253):
        assert min(worst(steps, Deviation(steps).b, coins) for coins in (whole, too_few)) > 1e-3


def test_a_deviation_below_one_has_a_proposal_of_its_own() -> None:
    """Known to fail: the scale ⌊σ⌋, which is 0 where σ < 1."""
    assert Deviation(GRID - 1).b == 1
    assert Deviation(GRID).b == 2


@pytest.mark.parametrize(("u", "b"), [(0, 3), (1, 3), (2, 3), (3, 3), (1, 1)])
def test_the_half_square_has_the_alternating_series(u: int, b: int) -> None:
    heads, reached = Fraction(0), Fraction(1)
    for k in count(1):
        success = Fraction(u, b) ** 2 / 2 / k
        heads += reached * (1 - success) if k % 2 else 0
        reached *= success
        if reached < Fraction(1, 10**18):
            break
    assert abs(float(heads) - math.exp(-((u / b) ** 2) / 2)) < 1e-15


@settings(deadline=None)  # the first call compiles the kernel, so no call has a time limit
@given(b=st.integers(1, 2**53), data=st.data(), seed=st.integers(0, 2**32))
def test_the_half_square_is_its_plain_twin(b: int, data: st.DataObject, seed: int) -> None:
    u = data.draw(st.integers(0, b))
    words = SeededRandomness(seed).stream().words(2000)
    read = iter(words.tolist())
    heads, at = half_square(U(u), U(b), U(mask(b)), words, 0)
    assert heads == twins.half_square(u, b, read)
    assert words.size - at == len(list(read))
    assert not any(half_square(U(u), U(b), U(mask(b)), words[:cut], 0)[1] >= 0 for cut in range(at))


@settings(deadline=None)  # the first call compiles the kernel, so no call has a time limit
@given(size=st.integers(1, 200), steps=st.sampled_from(STEPS), seed=st.integers(0, 2**32))
def test_blocks_of_any_size_are_one_stream(size: int, steps: int, seed: int) -> None:
    values, deviation = np.arange(-10, 10), Deviation(steps)
    noisy = values.copy()
    source = SeededRandomness(seed).stream()
    add_noise_in_blocks(add_discrete_gaussian, noisy, deviation, source, size)
    words = iter(SeededRandomness(seed).stream().words(100_000).tolist())
    twin = twins.discrete_gaussian
    assert noisy.tolist() == [v + twin(deviation.a, deviation.b, words) for v in values.tolist()]


def test_every_cut_of_a_draw_is_exhausted() -> None:
    deviation, values = Deviation(1500), np.zeros(1, dtype=np.int64)
    a, b, keep = U(deviation.a), U(deviation.b), U(mask(deviation.b))
    words = SeededRandomness(2).stream().words(4000)
    for _ in range(20):
        at = add_discrete_gaussian(values.copy(), 0, a, b, keep, words)[1]
        for cut in range(at):
            untouched = values.copy()
            assert add_discrete_gaussian(untouched, 0, a, b, keep, words[:cut]) == (0, 0)
            assert untouched == 0
        words = words[at:]
    assert EXHAUSTED < 0


def test_overflow_is_a_refusal_of_its_own() -> None:
    endless, values = [0, 0] + [0, 1] * 1024, np.zeros(3, dtype=np.int64)
    with pytest.raises(NoiseOverflow):
        discrete_gaussian(values, Deviation(MOST_STEPS), GivenWords(endless), Inline())


def bins_of(steps: int, draws: int) -> tuple[list[int], list[float]]:
    """The least |y| of each bin of about 1/200 of the mass, then of tails; and their masses."""
    sigma = steps / GRID
    reach = int(12 * sigma) + 2
    stride = max(1, reach // 200_000)
    centres = np.arange(0, reach, stride)
    # For a large σ, each entry is the sum over ``stride`` neighbouring values, so that the list
    # stays short.
    masses = np.zeros(centres.size)
    for shift in range(stride):
        at = centres + shift
        masses += np.where(at == 0, 1, 2) * np.exp(-((at / sigma) ** 2) / 2)
    masses /= masses.sum()
    beyond = masses[::-1].cumsum()[::-1]
    edges, shares, share = [0], [], 0.0
    for i, mass in enumerate(masses[:-1]):
        share += mass
        if share * draws >= max(FEWEST, draws / 200) and beyond[i + 1] * draws >= FEWEST:
            edges.append(int(centres[i + 1]))
            shares.append(share)
            share = 0.0
    return edges, [*shares, 1 - sum(shares)]


@pytest.mark.parametrize("steps", [300, GRID - 1, 1500, 7253, MOST_STEPS])
def test_samples_have_the_law(steps: int) -> None:
    draws = 200_000
    values = np.arange(draws)
    noise = discrete_gaussian(values, Deviation(steps), SeededRandomness(3), Inline()) - values
    signs = np.array([np.count_nonzero(noise < 0), np.count_nonzero(noise > 0)])
    assert p_value(signs, [0.5, 0.5]) > FALSE_ALARM
    edges, masses = bins_of(steps, draws)
    bins = np.searchsorted(edges, np.abs(noise), side="right") - 1
    assert p_value(np.bincount(bins, minlength=len(edges)), masses) > FALSE_ALARM


def test_a_sample_of_another_deviation_is_caught() -> None:
    values = np.zeros(200_000, dtype=np.int64)
    noise = discrete_gaussian(values, Deviation(7350), SeededRandomness(3), Inline())
    edges, masses = bins_of(7253, values.size)
    bins = np.searchsorted(edges, np.abs(noise), side="right") - 1
    assert p_value(np.bincount(bins, minlength=len(edges)), masses) < FALSE_ALARM


def test_the_smallest_sample_is_zero() -> None:
    """At σ = 1/1024 no other number has a chance above e⁻⁵⁰⁰⁰⁰⁰."""
    values = np.arange(1000)
    assert (discrete_gaussian(values, Deviation(1), SeededRandomness(1), Inline()) == values).all()


def test_the_vector_of_the_theory() -> None:
    assert Deviation.of(19933598937584, 2) == Deviation(7253)


@given(rho=st.integers(10**6, 10**18), squares=st.integers(1, 10**4))
def test_a_deviation_is_the_least_that_suffices(rho: int, squares: int) -> None:
    try:
        deviation = Deviation.of(rho, squares)
    except UnsupportedQuery:
        assert Fraction(squares, 2 * MOST_STEPS**2) * GRID**2 > Fraction(rho, 10**15)
        return

    def loss(steps: int) -> Fraction:
        return Fraction(squares) / (2 * Fraction(steps, GRID) ** 2)

    assert loss(deviation.steps) <= Fraction(rho, 10**15)
    assert deviation.steps == 1 or loss(deviation.steps - 1) > Fraction(rho, 10**15)


@pytest.mark.parametrize(("rho", "squares"), [(0, 1), (1, 1)])
def test_deviations_outside_of_the_range_are_refused(rho: int, squares: int) -> None:
    with pytest.raises(UnsupportedQuery):
        Deviation.of(rho, squares)
    with pytest.raises(UnsupportedQuery):
        Deviation(0)
