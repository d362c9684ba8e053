"""Release instants: the first interval · 2^j behind the work, and nothing in between."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engine.deadlines import SETTLING_SHARE, next_from, next_instant, release_after

intervals = st.sampled_from([0.001, 0.05, 0.1, 0.25, 1.0, 3.0])


@given(elapsed=st.floats(0, 1e5), interval=intervals)
def test_an_instant_is_the_first_power_that_fits(elapsed: float, interval: float) -> None:
    instant = next_instant(elapsed, interval)
    power = math.log2(instant / interval)
    assert power == pytest.approx(round(power), abs=1e-9)
    assert instant >= elapsed
    assert instant == interval or instant / 2 < elapsed


@given(elapsed=st.floats(0, 1e5), interval=intervals)
def test_there_is_time_to_store_the_answer(elapsed: float, interval: float) -> None:
    assert release_after(elapsed, interval) >= elapsed + SETTLING_SHARE * interval * 0.999


@pytest.mark.parametrize("elapsed", [0.0, 0.3, 7.0])
def test_an_interval_of_zero_switches_the_clock_off(elapsed: float) -> None:
    assert release_after(elapsed, 0.0) == elapsed
    assert next_instant(elapsed, 0.0) == elapsed


@pytest.mark.parametrize("power", range(12))
def test_an_instant_that_is_met_exactly_is_not_missed(power: int) -> None:
    assert next_instant(0.1 * 2.0**power, 0.1) == 0.1 * 2.0**power


@given(started=st.floats(1e-3, 1e8), interval=intervals, power=st.integers(0, 12))
def test_how_long_the_machine_has_run_moves_no_instant(
    started: float, interval: float, power: int
) -> None:
    """The rounding of ``started + seconds`` depends on both, so it must not matter."""
    seconds = interval * 2.0**power
    assert next_from(started, started + seconds, interval) == seconds
    later = next_from(started, started + seconds + interval / 1000, interval)
    assert later == 2 * seconds
