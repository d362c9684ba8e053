"""Refinement reads only what it must, and its intervals hold the truth."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.noise.rate import Rate
from mechanisms.noise.refinement import Arrival, first_in_order, refined
from tests.support.randomness import GivenWords, SeededRandomness

RATE = Rate.of(123456789, 20)


@pytest.mark.parametrize("gumbel", [False, True])
@settings(deadline=None, max_examples=50)
@given(bits=st.integers(0, 2**64 - 1), gap=st.integers(0, 2**62), more=st.integers(0, 2**64 - 1))
def test_a_refined_bracket_holds_the_truth_and_is_narrow(
    gumbel: bool, bits: int, gap: int, more: int
) -> None:
    arrival = Arrival(0, gap, bits, 64, -math.inf, math.inf, gumbel=gumbel)
    narrow = refined(arrival, RATE, GivenWords([more]))
    u = bits << 64 | more
    assert (narrow.bits, narrow.length, narrow.index, narrow.gap) == (u, 128, 0, gap)
    if 0 < u < 2**128 - 1:
        with mpmath.workprec(600):
            middle = (mpmath.mpf(u) + 0.5) / 2**128
            noise = mpmath.log(-mpmath.log(middle)) if gumbel else mpmath.log(middle)
            truth = noise + mpmath.mpf(RATE.a) * gap / RATE.b
            as_fraction = Fraction(*mpmath.mpf(truth).as_integer_ratio())
        assert narrow.low < as_fraction < narrow.high
        # The bracket that holds an arrival time is hardly wider than the unknown further bits of
        # its uniform number u make it. One unit of u, 2⁻¹²⁸, moves the arrival by about 2⁻¹²⁸ /
        # min(u, 1 − u).
        edge = Fraction(min(u, 2**128 - 1 - u), 2**128)
        assert narrow.high - narrow.low < 4 * Fraction(1, 2**128) / edge


@pytest.mark.parametrize(("bits", "more"), [(0, 0), (2**64 - 1, 2**64 - 1)])
def test_the_ends_stay_open(bits: int, more: int) -> None:
    narrow = refined(Arrival(0, 3, bits, 64, -math.inf, math.inf), RATE, GivenWords([more]))
    assert (narrow.low, narrow.high) == (-math.inf, math.inf)


def test_only_overlaps_that_matter_are_refined() -> None:
    """Two places are certain; the overlap beyond them decides nothing until the third is asked."""
    arrivals = [
        Arrival(4, 0, 1 << 40, 64, -20.0, -15.0, gumbel=False),
        Arrival(7, 0, 1 << 60, 64, -3.0, -2.0, gumbel=False),
        Arrival(2, 0, 1 << 63, 64, -1.0, 0.0, gumbel=False),
        Arrival(9, 0, 1 << 63, 64, -0.9, 0.1, gumbel=False),
    ]
    nothing = _NoWords([])
    assert first_in_order(arrivals[::-1], 2, RATE, nothing) == [4, 7]
    # If three are selected, the third and the fourth candidate must be told apart. One more random
    # word for each of them is enough.
    assert first_in_order(arrivals, 3, RATE, GivenWords([5, 4])) == [4, 7, 9]


def test_chains_of_overlaps_are_refined_together() -> None:
    arrivals = [Arrival(i, 0, i << 60, 64, i - 8.0, i - 6.0, gumbel=False) for i in range(1, 6)]
    assert first_in_order(arrivals, 1, RATE, SeededRandomness(1).stream()) == [1]


class _NoWords(GivenWords):
    def words(self, count: int) -> object:  # type: ignore[override]
        raise AssertionError(f"{count} words were read in vain")
