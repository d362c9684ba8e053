"""Scores against their twins in unbounded integers, and the laws they obey."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mechanisms.kernels.long_division import LIMIT
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.selection.dampening import (
    dampened_scores,
    flattened_scores,
    global_scores,
    score_bound,
    scores,
    shifted_scores,
)
from mechanisms.utilities.covering import ConstantSensitivity
from mechanisms.utilities.utility import Grid, Measurement
from tests.support import sequences
from tests.support.sequences import Sequences


@dataclass(frozen=True)
class Case:
    utilities: list[int]
    delta: Sequences

    def array(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.array(self.utilities, dtype=np.int64)


@st.composite
def cases(draw: st.DrawFn, most: int = 60) -> Case:
    """Up to five candidates, δ non-decreasing up to a cap; ``most`` bounds the magnitudes."""
    cap = draw(st.integers(1, most))
    horizon = draw(st.integers(1, 7))
    count = draw(st.integers(1, 5))
    step = st.integers(1, cap)
    rows = [sorted(draw(st.lists(step, min_size=horizon, max_size=horizon))) for _ in range(count)]
    wide = st.integers(-8 * cap, 8 * cap)
    edges = [sum(row[:i]) for row in rows for i in range(horizon + 1)]
    # Utilities at the ends of the steps of a dampened score, or next to them, would show a
    # comparison that is off by one.
    ends = st.sampled_from(edges).flatmap(lambda e: st.sampled_from([e - 1, e, e + 1, -e, -e - 1]))
    utilities = draw(st.lists(wide | ends, min_size=count, max_size=count))
    return Case(utilities, Sequences(rows, cap))


@st.composite
def huge_cases(draw: st.DrawFn) -> tuple[Case, int]:
    """Utilities and sums of δ just below 2⁶², with the largest q that their scores allow."""
    horizon = draw(st.integers(1, 4))
    cap = draw(st.integers((LIMIT - 1) // horizon - 5, (LIMIT - 1) // horizon))
    step = st.integers(cap // draw(st.sampled_from([1, 2, 1000, cap])), cap)
    count = draw(st.integers(1, 4))
    rows = [sorted(draw(st.lists(step, min_size=horizon, max_size=horizon))) for _ in range(count)]
    size = st.integers(LIMIT - 9, LIMIT - 1) | st.integers(0, LIMIT - 1)
    signs = st.sampled_from([-1, 1])
    utilities = [draw(size) * draw(signs) for _ in range(count)]
    return Case(utilities, Sequences(rows, cap)), draw(st.sampled_from([0, 20, 31]))


score_bits = st.integers(0, 24)


@settings(deadline=None)
@given(case=cases(), q=score_bits)
def test_global_scores_match_their_twin(case: Case, q: int) -> None:
    cap = case.delta.cap
    actual = global_scores(case.array(), cap, q)
    assert actual.tolist() == [sequences.ratio(u, cap, q) for u in case.utilities]


@settings(deadline=None)
@given(case=cases(), q=score_bits)
def test_dampened_scores_match_their_twin(case: Case, q: int) -> None:
    actual = dampened_scores(case.array(), case.delta, q)
    pairs = zip(case.utilities, case.delta.rows, strict=True)
    assert actual.tolist() == [sequences.dampened(u, row, case.delta.cap, q) for u, row in pairs]


@settings(deadline=None)
@given(case=cases(), q=score_bits)
def test_flattened_scores_match_their_twin(case: Case, q: int) -> None:
    actual = flattened_scores(case.array(), case.delta, q)
    rows, cap = case.delta.rows, case.delta.cap
    assert actual.tolist() == sequences.flattened(case.utilities, rows, cap, q)


@settings(deadline=None)
@given(case=cases(), q=score_bits, direction=st.sampled_from([1, -1]))
def test_shifted_scores_match_their_twin(case: Case, q: int, direction: int) -> None:
    actual = shifted_scores(case.array(), case.delta, q, 1 if direction > 0 else -1)
    pairs = zip(case.utilities, case.delta.rows, strict=True)
    cap = case.delta.cap
    assert actual.tolist() == [sequences.shifted(u, row, cap, q, direction) for u, row in pairs]


@settings(deadline=None)
@given(drawn=huge_cases())
def test_nothing_overflows_just_below_the_limit(drawn: tuple[Case, int]) -> None:
    case, q = drawn
    grid = Grid(bits=0, cap=case.delta.cap, horizon=case.delta.horizon, largest=LIMIT - 1)
    assume(score_bound(grid, q) < LIMIT)
    rows, cap = case.delta.rows, case.delta.cap
    pairs = list(zip(case.utilities, rows, strict=True))
    utilities = case.array()
    assert global_scores(utilities, cap, q).tolist() == [
        sequences.ratio(u, cap, q) for u in case.utilities
    ]
    assert flattened_scores(utilities, case.delta, q).tolist() == sequences.flattened(
        case.utilities, rows, cap, q
    )
    local = dampened_scores(utilities, case.delta, q).tolist()
    assert local == [sequences.dampened(u, row, cap, q) for u, row in pairs]
    assert max(map(abs, local)) <= score_bound(grid, q)
    if case.delta.horizon * cap < LIMIT:
        for direction in (1, -1):
            actual = shifted_scores(utilities, case.delta, q, 1 if direction > 0 else -1).tolist()
            assert actual == [sequences.shifted(u, row, cap, q, direction) for u, row in pairs]
            assert max(map(abs, actual)) <= score_bound(grid, q)


@settings(deadline=None)
@given(case=cases(), q=score_bits)
def test_local_with_the_constant_cap_is_global(case: Case, q: int) -> None:
    constant = ConstantSensitivity(case.delta.cap, len(case.utilities), case.delta.horizon)
    expected = global_scores(case.array(), case.delta.cap, q).tolist()
    assert dampened_scores(case.array(), constant, q).tolist() == expected
    assert flattened_scores(case.array(), constant, q).tolist() == expected
    assert shifted_scores(case.array(), constant, q, 1).tolist() == expected


@settings(deadline=None)
@given(case=cases(), q=score_bits)
def test_a_larger_utility_never_scores_lower(case: Case, q: int) -> None:
    above = case.array() + 1
    for mode in (dampened_scores, flattened_scores):
        assert (mode(above, case.delta, q) >= mode(case.array(), case.delta, q)).all()


@settings(deadline=None)
@given(case=cases(), q=score_bits)
def test_scores_stay_inside_the_public_bound(case: Case, q: int) -> None:
    largest = max(map(abs, case.utilities))
    grid = Grid(bits=0, cap=case.delta.cap, horizon=case.delta.horizon, largest=largest)
    measured = Measurement(case.array(), case.delta)
    for sensitivity in Sensitivity:
        for direction in (1, -1):
            actual = scores(measured, grid, sensitivity, q, 1 if direction > 0 else -1)
            assert np.abs(actual).max() <= score_bound(grid, q)


def test_one_entry_point_serves_every_mode() -> None:
    delta = Sequences([[6, 10, 12], [3, 3, 12]], cap=12)
    grid = Grid(bits=0, cap=12, horizon=3, largest=40)
    measured = Measurement(np.array([13, -8]), delta)
    actual = {mode: scores(measured, grid, mode, 4, -1).tolist() for mode in Sensitivity}
    assert actual == {
        Sensitivity.GLOBAL: [16 * 13 // 12, 16 * -8 // 12],
        Sensitivity.LOCAL: [27, -(2 * 16 + 3)],
        Sensitivity.FLATTENED: [27, -(16 + 4)],
        Sensitivity.SHIFTED: [16 * (13 + 8) // 12, 16 * (-8 + 18) // 12],
    }


def test_a_single_candidate_without_utility_scores_zero() -> None:
    nothing = np.zeros(1, dtype=np.int64)
    constant = ConstantSensitivity(cap=1, count=1)
    grid = Grid(bits=0, cap=1, horizon=1, largest=0)
    for sensitivity in Sensitivity:
        assert scores(Measurement(nothing, constant), grid, sensitivity, 20, 1).tolist() == [0]


def test_shifted_scores_refuse_a_grid_made_for_another_mode() -> None:
    fine = ConstantSensitivity(cap=LIMIT // 4, count=1, horizon=4)
    with pytest.raises(ValueError, match="too fine"):
        shifted_scores(np.zeros(1, dtype=np.int64), fine, 20, 1)


def test_scoring_leaves_its_inputs_as_they_were() -> None:
    utilities = np.array([13, -8, 0])
    delta = Sequences([[6, 10, 12]] * 3, cap=12)
    for mode in (dampened_scores, flattened_scores):
        mode(utilities, delta, 4)
    assert utilities.tolist() == [13, -8, 0]


def test_coarser_grids_round_bounds_up_once() -> None:
    grid = Grid(bits=5, cap=33, horizon=3, largest=97)
    assert grid.coarser(5) == grid
    assert grid.coarser(1) == Grid(bits=1, cap=3, horizon=3, largest=7)
    assert Grid(bits=5, cap=1, horizon=1, largest=0).coarser(0).cap == 1
    with pytest.raises(ValueError, match="only made coarser"):
        grid.coarser(6)
