"""The fit of the bench of growth, on seconds that are made up."""

from __future__ import annotations

import pytest

from benchmarks.draws.growth import fitted

SIZES = (10, 100, 1000, 10_000)


def test_a_power_is_its_own_exponent_and_nothing_is_off_the_fit() -> None:
    exponent, off = fitted(SIZES, [3 * size**1.25 for size in SIZES])
    assert exponent == pytest.approx(1.25)
    assert off == pytest.approx(1.0)


def test_a_cliff_is_far_from_the_fit() -> None:
    seconds = [float(size) for size in SIZES]
    seconds[2] *= 10
    assert fitted(SIZES, seconds)[1] > 2
