"""Sums of spans where they fit 64 bits and where they do not, and the bisection."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.kernels.long_division import LIMIT
from mechanisms.kernels.spans import (
    FAR,
    PrefixSums,
    TwoParts,
    bisected,
    bisected_in_two,
    sums_in_two,
    weighted_sums,
)

STEPS = st.lists(st.integers(1, 9) | st.integers(LIMIT // 8, LIMIT - 1), min_size=1, max_size=9)


@settings(deadline=None)
@given(STEPS, st.integers(0, 12), st.integers(0, 12))
def test_a_span_is_its_sum_or_far(steps: list[int], start: int, length: int) -> None:
    values = np.array(sorted(steps), dtype=np.int64)
    listed = [*values.tolist(), *([int(values[-1])] * 30)]
    places = np.array([start], dtype=np.int64)
    expected = min(FAR, sum(listed[start : start + length]))
    assert PrefixSums.of(values).between(places, places + length).tolist() == [expected]


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 2**40), st.integers(0, FAR)), min_size=1, max_size=4))
def test_weighted_sums_are_cut_off_at_far(terms: list[tuple[int, int]]) -> None:
    arrays = [(factor, np.array([value], dtype=np.int64)) for factor, value in terms]
    assert weighted_sums(arrays).tolist() == [min(FAR, sum(f * v for f, v in terms))]


@settings(deadline=None)
@given(STEPS, st.lists(st.integers(0, FAR) | st.integers(0, 30), min_size=1, max_size=6))
def test_bisection_finds_the_last_sum_below_the_goal(steps: list[int], goals: list[int]) -> None:
    values, rounds = np.array(sorted(steps), dtype=np.int64), 0
    ends = [sum(values.tolist()[:t]) for t in range(len(steps) + 1)]

    def before(t: np.ndarray) -> np.ndarray:
        nonlocal rounds
        rounds += 1
        return PrefixSums.of(values).between(np.zeros_like(t), t)

    steps_passed = bisected(np.array(goals, dtype=np.int64), before, len(steps))
    assert steps_passed.tolist() == [
        max((t for t, end in enumerate(ends) if end < goal), default=0) for goal in goals
    ]
    assert rounds == len(steps).bit_length()


@settings(deadline=None)
@given(
    STEPS,
    STEPS,
    st.lists(
        st.tuples(st.integers(0, FAR) | st.integers(0, 40), *[st.integers(0, 12)] * 3), min_size=1
    ),
    st.integers(0, 20),
)
def test_bisection_in_two_sums_one_list_up_to_the_turn_and_then_the_other(
    one: list[int], other: list[int], rows: list[tuple[int, int, int, int]], horizon: int
) -> None:
    lists = [PrefixSums.of(np.array(sorted(steps), dtype=np.int64)) for steps in (one, other)]
    goals, ones, others, turns = np.array(rows, dtype=np.int64).T.copy()

    def before(t: np.ndarray) -> np.ndarray:
        turn = np.minimum(t, turns)
        early = lists[0].between(ones, ones + turn)
        return np.minimum(early + lists[1].between(others + turn, others + t), FAR)

    parts = TwoParts(lists[0], ones, lists[1], others, turns)
    passed = bisected_in_two(goals, parts, horizon)
    assert passed.tolist() == bisected(goals, before, horizon).tolist()
    assert sums_in_two(parts, passed).tolist() == before(passed).tolist()
