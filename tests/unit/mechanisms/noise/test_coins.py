"""Coins against Python integers: the same words give the same draws, and every corner is exact."""

from __future__ import annotations

from fractions import Fraction
from itertools import count

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.noise import coins
from mechanisms.noise.coins import EXHAUSTED, OVERFLOW, ZERO
from mechanisms.noise.rate import Rate
from tests.support.randomness import SeededRandomness
from tests.unit.mechanisms.noise import twins
from tests.unit.mechanisms.noise.rates import NAMES, RATES

U = np.uint64
LARGEST = Rate.of(1000, 30)
#: Words with which a geometric draw leaves its range: they are 1,024 successes of the coin with
#: probability exp(−1). Each success reads the words 0 and 1.
OVERFLOWING = [0, 0] + [0, 1] * 1024


@settings(deadline=None)  # the first call compiles the kernel, so no call has a time limit
@given(n=st.integers(1, 2**62), seed=st.integers(0, 2**32))
def test_below_keeps_the_low_bits_until_they_are_small_enough(n: int, seed: int) -> None:
    words = SeededRandomness(seed).stream().words(300)
    read = iter(words.tolist())
    draw, at = coins.below(U(n), U(coins.mask(n)), words, 0)
    assert draw == twins.below(n, read)
    assert words.size - at == len(list(read))


def test_below_one_takes_no_word_and_an_empty_block_is_exhausted() -> None:
    nothing = np.zeros(0, dtype=np.uint64)
    assert coins.below(U(1), U(0), nothing, 0) == (0, 0)
    assert coins.below(U(2), U(1), nothing, 0)[1] == EXHAUSTED


@settings(deadline=None)  # the first call compiles the kernel, so no call has a time limit
@given(b=st.integers(1, 2**62 - 1), data=st.data(), seed=st.integers(0, 2**32))
def test_a_coin_is_its_plain_twin(b: int, data: st.DataObject, seed: int) -> None:
    u = data.draw(st.integers(0, b))
    words = SeededRandomness(seed).stream().words(2000)
    read = iter(words.tolist())
    heads, at = coins.bernoulli_exp(U(u), U(b), U(coins.mask(b)), words, 0)
    assert heads == twins.bernoulli_exp(u, b, read)
    assert words.size - at == len(list(read))


@pytest.mark.parametrize("rate", RATES, ids=NAMES)
def test_a_geometric_draw_is_its_plain_twin_word_for_word(rate: Rate) -> None:
    words = SeededRandomness(1).stream().words(20_000)
    read = iter(words.tolist())
    a, b, mask = U(rate.a), U(rate.b), U(coins.mask(rate.b))
    at = 0
    for _ in range(1000):
        noise, at = coins.geometric(a, b, mask, words, at)
        assert noise == twins.geometric(rate.a, rate.b, read)
    assert words.size - at == len(list(read))


@pytest.mark.parametrize("rate", RATES, ids=NAMES)
def test_every_cut_of_a_draw_is_exhausted(rate: Rate) -> None:
    a, b, mask = U(rate.a), U(rate.b), U(coins.mask(rate.b))
    words = SeededRandomness(2).stream().words(500)
    for _ in range(20):
        at = coins.geometric(a, b, mask, words, 0)[1]
        for cut in range(at):
            assert coins.geometric(a, b, mask, words[:cut], 0)[1] == EXHAUSTED
        words = words[at:]


def test_a_run_of_1024_overflows_and_one_less_does_not() -> None:
    a, b, mask = U(LARGEST.a), U(LARGEST.b), U(coins.mask(LARGEST.b))
    longest = np.array([*OVERFLOWING[:-2], 1], dtype=np.uint64)
    noise, at = coins.geometric(a, b, mask, longest, 0)
    assert (noise, at) == (1023 * LARGEST.b // LARGEST.a, longest.size)
    overflowing = np.array(OVERFLOWING, dtype=np.uint64)
    assert coins.geometric(a, b, mask, overflowing, 0) == (ZERO, OVERFLOW)


CORNERS = [
    (u, v, rate)
    for rate in (*RATES, Rate.of(1, 20), Rate.of(10**16, 20), Rate(3, 7), Rate(7, 1))
    for v in (0, 1, 7, 1023)
    for u in {0, min(1, rate.b - 1), rate.b - 1}
]


def wrong_corners(quotient: object) -> int:
    """The number of corner cases in which a computation of ⌊(u + bv) / a⌋ is wrong."""
    assert callable(quotient)
    return sum(
        int(quotient(U(u), U(v), U(rate.a), U(rate.b))) != (u + rate.b * v) // rate.a
        for u, v, rate in CORNERS
    )


def test_the_quotient_is_exact_at_every_corner() -> None:
    assert wrong_corners(coins.quotient) == 0


def test_a_signed_operand_is_caught() -> None:
    """Compilers and NumPy turn int64 · uint64 into float64, which loses the low bits."""
    assert isinstance(np.int64(1) * U(1), np.float64)

    def signed(u: np.uint64, v: np.uint64, a: np.uint64, b: np.uint64) -> np.float64:
        run = np.int64(v)
        return run * (b // a) + (u + run * (b % a)) // a  # type: ignore[return-value]

    assert wrong_corners(signed) > 0


def test_forming_the_product_is_caught() -> None:
    @numba.njit
    def formed(u, v, a, b):  # type: ignore[no-untyped-def]
        return (u + b * v) // a

    assert (
        formed(U(LARGEST.b - 1), U(7), U(LARGEST.a), U(LARGEST.b))
        == (8 * LARGEST.b - 1) // LARGEST.a
    )
    assert (
        formed(U(LARGEST.b - 1), U(8), U(LARGEST.a), U(LARGEST.b))
        != (9 * LARGEST.b - 1) // LARGEST.a
    )
    assert wrong_corners(formed) > 0


@settings(deadline=None)  # the first call compiles the kernel, so no call has a time limit
@given(a=st.integers(1, 10**13), b=st.integers(1, 2**62 - 1), data=st.data())
def test_the_quotient_is_exact_wherever_a_rate_exists(a: int, b: int, data: st.DataObject) -> None:
    a = max(a, b // 2**51 + 1)
    rate = Rate(a, b)
    u = data.draw(st.integers(0, rate.b - 1))
    v = data.draw(st.integers(0, 1023))
    assert coins.quotient(U(u), U(v), U(rate.a), U(rate.b)) == (u + rate.b * v) // rate.a


@pytest.mark.parametrize(("u", "b"), [(0, 3), (1, 3), (2, 3), (3, 3), (1, 1)])
def test_the_coin_has_the_alternating_series(u: int, b: int) -> None:
    """P(heads) = Σ over an odd number of draws k of P(k − 1 successes, then a failure)."""
    heads, reached = Fraction(0), Fraction(1)
    for k in count(1):
        success = Fraction(u, b * k)
        heads += reached * (1 - success) if k % 2 else 0
        reached *= success
        if reached < Fraction(1, 10**18):
            break
    assert abs(float(heads) - np.exp(-u / b)) < 1e-15
