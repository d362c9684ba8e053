"""Rates: their values, and the limits of exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.model.errors import UnsupportedQuery
from mechanisms.noise.coins import _LARGEST_RUN
from mechanisms.noise.rate import LARGEST_RUN, NOISE_LIMIT, Rate, score_bits


@given(epsilon=st.integers(1000, 10**13), bits=st.integers(0, 30))
def test_the_stated_range_is_served(epsilon: int, bits: int) -> None:
    rate = Rate.of(epsilon, bits)
    assert rate.exponent() == Fraction(epsilon, 10**9) / 2 ** (bits + 1)


@given(a=st.integers(1, 2**70), b=st.integers(1, 2**70))
def test_a_rate_keeps_every_intermediate_value_in_64_bits(a: int, b: int) -> None:
    fits = b < 2**62 and b - 1 + 1023 * (b % a) < 2**63 and (b - 1 + 1023 * b) // a < NOISE_LIMIT
    if fits:
        Rate(a, b)
    else:
        with pytest.raises(UnsupportedQuery):
            Rate(a, b)


@pytest.mark.parametrize(
    ("epsilon", "bits", "draws"),
    [
        (0, 20, 1),
        (10**9, 32, 1),
        (10**9, 62, 1),
        (10**9, -1, 1),
        (1000, 20, 2**11),
        (10**17, 31, 1),
    ],
)
def test_what_does_not_fit_is_refused(epsilon: int, bits: int, draws: int) -> None:
    with pytest.raises(UnsupportedQuery):
        Rate.of(epsilon, bits, draws)


def test_the_smallest_loss_is_served_on_the_usual_grid() -> None:
    assert Rate.of(1, 20).exponent() == Fraction(1, 10**9 * 2**21)


def test_draws_share_the_loss() -> None:
    assert Rate.of(10**9, 20, 10).exponent() == Rate.of(10**8, 20).exponent()


def test_rates_of_counts_and_of_scales() -> None:
    assert Rate.of_counts(5 * 10**8, 3).exponent() == Fraction(1, 6)
    assert Rate.of_scale(Fraction(22, 7)) == Rate(7, 22)


@given(draws=st.integers(1, 2**31))
def test_the_grid_leaves_room_for_every_number_of_draws(draws: int) -> None:
    bits = score_bits(draws)
    assert bits == 20 if draws <= 2**11 else draws << bits <= 2**31 < draws << (bits + 1)
    assert 10**9 * draws << (bits + 1) < 2**62


def test_more_draws_than_any_grid_admits_are_refused() -> None:
    with pytest.raises(UnsupportedQuery):
        score_bits(2**31 + 1)


def test_the_kernel_stops_where_the_rate_says() -> None:
    assert int(_LARGEST_RUN) == LARGEST_RUN
