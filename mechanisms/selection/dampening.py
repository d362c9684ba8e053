"""Scores of sensitivity one: utilities divided by how far they may still move.

A score is a whole number of steps of 2^−q and differs by at most 2^q between neighbours, for
every candidate, whenever δ is admissible (``mechanisms.model.sensitivity``). That is all a selector
needs: any mechanism that is ε-DP for such scores answers with loss ε. Only integers take part.

Source: Local Dampening, PVLDB 14(4), 2021: Definitions 3.6–3.8 with one odd rule for all signs
(D = 0 at u = 0), the flattened δ of section 4.2, and the shifted limit of Definition 4.3 for δ
that reach the common cap at a public horizon; without that the limit need not exist.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from mechanisms.kernels.long_division import LIMIT, scaled_floor
from mechanisms.model.sensitivity import (
    Integers,
    Sensitivity,
    SensitivityFunction,
    WalkedSensitivity,
)
from mechanisms.utilities.utility import Grid, Measured

Direction = Literal[1, -1]


def scores(
    measured: Measured,
    grid: Grid,
    sensitivity: Sensitivity,
    score_bits: int,
    direction: Direction,
) -> Integers:
    """Integer scores of all candidates, shape (n,), of sensitivity at most 2^score_bits.

    Args:
        measured: private utilities and δ, on ``grid``.
        sensitivity: which of ``SCORES`` turns them into scores.
        score_bits: q; ``score_bound`` must be below 2⁶² with it.
        direction: the public direction of the shift; the other modes ignore it.
    """
    return SCORES[sensitivity](measured, grid, score_bits, direction)


def score_bound(grid: Grid, score_bits: int) -> int:
    """2^q · (T + max|u| / Δ + 1): no score of any dataset of the universe exceeds it."""
    return (grid.horizon + -(-grid.largest // grid.cap) + 1) << score_bits


def global_scores(utilities: Integers, cap: int, score_bits: int) -> Integers:
    """⌊2^q · u / Δ⌋; all zero where Δ = 0, for then the (floored) cap is 1 and u is 0."""
    return scaled_floor(utilities, cap, score_bits)


def dampened_scores(utilities: Integers, delta: SensitivityFunction, score_bits: int) -> Integers:
    """D: how many steps of δ(0), δ(1), … cover |u|, the last one in part; the sign of u.

    One pass a step over the candidates that are not yet covered; from the horizon on every step
    is the cap, so the rest is one division.
    """
    rest = np.abs(utilities)
    if isinstance(delta, WalkedSensitivity):
        steps, rest, width = delta.passed(rest)
        return _signed(utilities, steps, rest, width, score_bits)
    steps = np.zeros(utilities.shape, dtype=np.int64)
    width = np.full(utilities.shape, delta.cap, dtype=np.int64)
    open_ = np.flatnonzero(rest)
    left = rest[open_]
    for t in range(delta.horizon):
        if not open_.size:
            break
        step = delta.at(t, open_)
        covered = left <= step
        if covered.any():
            done = open_[covered]
            steps[done], rest[done], width[done] = t, left[covered], step[covered]
            more = ~covered
            open_, left, step = open_[more], left[more], step[more]
        left = left - step
    steps[open_], rest[open_] = delta.horizon, left
    return _signed(utilities, steps, rest, width, score_bits)


def flattened_scores(utilities: Integers, delta: SensitivityFunction, score_bits: int) -> Integers:
    """D with the largest δ(t) of all candidates: one sequence for all, so no order inversions."""
    rest = np.abs(utilities)
    if isinstance(delta, WalkedSensitivity):
        steps, rest, width = delta.passed_by_largest(rest)
        return _signed(utilities, steps, rest, width, score_bits)
    goal = int(rest.max(initial=0))
    widths: list[int] = []
    sums = [0]
    while sums[-1] < goal and len(widths) < delta.horizon:
        widths.append(delta.largest(len(widths)))
        sums.append(sums[-1] + widths[-1])
    covered = np.array(sums, dtype=np.int64)
    # Steps passed in full: the last sum strictly below |u|, and all of them beyond the horizon.
    steps = np.searchsorted(covered[1:], rest, side="left").astype(np.int64)
    width = np.array([*widths, delta.cap], dtype=np.int64)[steps]
    return _signed(utilities, steps, rest - covered[steps], width, score_bits)


def shifted_scores(
    utilities: Integers, delta: SensitivityFunction, score_bits: int, direction: Direction
) -> Integers:
    """S⁺ = ⌊2^q · (u − K) / Δ⌋ or S⁻ = ⌊2^q · (u + K) / Δ⌋, K = Σ_{t < T} (Δ − δ(t))."""
    if delta.horizon * delta.cap >= LIMIT:
        raise ValueError("the grid is too fine: T · Δ must stay below 2^62 for shifted scores")
    return scaled_floor(utilities - direction * delta.shortfall(), delta.cap, score_bits)


def _signed(
    utilities: Integers, steps: Integers, rest: Integers, width: Integers, score_bits: int
) -> Integers:
    """sign(u) · (steps + rest / width) on the grid of scores, rounded down."""
    sign = np.sign(utilities)
    dampened: Integers = sign * (steps << score_bits)
    return dampened + scaled_floor(sign * rest, width, score_bits)


def _global(measured: Measured, grid: Grid, score_bits: int, _: Direction) -> Integers:
    return global_scores(measured.utilities, grid.cap, score_bits)


def _local(measured: Measured, _: Grid, score_bits: int, __: Direction) -> Integers:
    return dampened_scores(measured.utilities, measured.delta, score_bits)


def _flattened(measured: Measured, _: Grid, score_bits: int, __: Direction) -> Integers:
    return flattened_scores(measured.utilities, measured.delta, score_bits)


def _shifted(measured: Measured, _: Grid, score_bits: int, direction: Direction) -> Integers:
    return shifted_scores(measured.utilities, measured.delta, score_bits, direction)


SCORES: dict[Sensitivity, Callable[[Measured, Grid, int, Direction], Integers]] = {
    Sensitivity.GLOBAL: _global,
    Sensitivity.LOCAL: _local,
    Sensitivity.FLATTENED: _flattened,
    Sensitivity.SHIFTED: _shifted,
}
