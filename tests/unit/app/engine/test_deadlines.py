"""Deadlines are a function of the public cost alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engine.deadlines import ALLOWANCE, MARGIN, STALL, START, Clock
from app.engine.schedule import LIGHT_BURST

SECONDS = st.floats(0, 1000, allow_nan=False)
TICKS = st.floats(0.001, 60, allow_nan=False)


@given(seconds=SECONDS, tick=TICKS)
def test_a_deadline_leaves_a_margin_and_time_to_store_the_answer(
    seconds: float, tick: float
) -> None:
    clock = Clock(tick)
    length = clock.length(seconds)
    assert clock.allowance >= ALLOWANCE
    assert clock.start >= START
    least = clock.start + MARGIN * seconds + STALL + clock.allowance
    assert least <= length * (1 + 1e-9)
    assert length < (least + tick) * (1 + 1e-9)
    assert round(length / tick) == pytest.approx(length / tick)


def test_the_lightest_queries_leave_after_one_tick_and_other_light_ones_after_two() -> None:
    assert Clock(0.025).length(0.0004) == 0.025
    assert Clock(0.025).length(0.002) == 0.05


def test_work_that_starts_too_late_moves_its_deadline_by_ticks() -> None:
    clock = Clock(0.025)
    assert START >= MARGIN * LIGHT_BURST
    for length in (0.05, 1.0):
        moved = [clock.moved(length, clock.start + late) for late in (-1.0, -1e-6, 0.02, 0.03)]
        assert moved == pytest.approx([length, length, length + 0.025, length + 0.05])


@given(seconds=SECONDS, tick=TICKS, late=st.floats(0, 100, allow_nan=False))
def test_an_answer_that_is_stored_late_leaves_at_a_tick(
    seconds: float, tick: float, late: float
) -> None:
    clock = Clock(tick)
    length = clock.length(seconds)
    assert clock.next_tick(length, length - min(late, length)) == length
    instant = clock.next_tick(length, length + late)
    assert length + late <= instant * (1 + 1e-9)
    assert (instant - length) / tick == pytest.approx(round((instant - length) / tick), abs=1e-6)
    assert instant - length < late + tick * (1 + 1e-9)


def test_without_a_tick_there_are_no_deadlines() -> None:
    clock = Clock(0.0)
    assert clock.length(5.0) == 0.0
    assert clock.next_tick(0.0, 1.25) == 1.25
