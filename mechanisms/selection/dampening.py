"""Scores of sensitivity one: utilities divided by how far they may still move.

A score is a whole number of steps of 2^−q. Between neighbours it differs by at most 2^q for every
candidate, whenever δ is admissible (``mechanisms.model.sensitivity``). A selector needs nothing
else: any mechanism that is ε-DP for such scores answers with loss ε. Only integers take part.

Source: Local Dampening, PVLDB 14(4), 2021: Definitions 3.6–3.8 with one rule for both signs of u (D
    is odd in u, hence 0 at u = 0), the flattened δ of section 4.2, and the shifted limit of
    Definition 4.3. That limit is for δ that reach the common cap at a public horizon; otherwise it
    need not exist.
"""

from typing import Literal

import numpy as np

from mechanisms.kernels.long_division import LIMIT, scaled_floor
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.sensitivity import Integers, Sensitivity, SensitivityFunction
from mechanisms.utilities.utility import Grid, Measurement

Direction = Literal[1, -1]


def scores(
    measured: Measurement,
    grid: Grid,
    sensitivity: Sensitivity,
    score_bits: int,
    direction: Direction,
) -> Integers:
    """Integer scores of all candidates, shape (n,), of sensitivity at most 2^score_bits.

    Args:
        measured: private utilities and δ, on ``grid``.
        sensitivity: the way in which they become scores.
        score_bits: q; ``score_bound`` must be below 2⁶² with it.
        direction: the public direction of the shift; only ``SHIFTED`` reads it.
    """
    utilities, delta = measured.utilities, measured.delta
    match sensitivity:
        case Sensitivity.GLOBAL:
            return global_scores(utilities, grid.cap, score_bits)
        case Sensitivity.LOCAL:
            return dampened_scores(utilities, delta, score_bits)
        case Sensitivity.FLATTENED:
            return flattened_scores(utilities, delta, score_bits)
        case Sensitivity.SHIFTED:
            return shifted_scores(utilities, delta, score_bits, direction)


def score_bound(grid: Grid, score_bits: int) -> int:
    """2^q · (T + max|u| / Δ + 1): no score of any possible dataset exceeds it."""
    return (grid.horizon + -(-grid.largest // grid.cap) + 1) << score_bits


def check_exact(grid: Grid, score_bits: int) -> None:
    """Raise UnsupportedQuery, from public facts, unless utilities and scores fit 64 bits."""
    if max(grid.cap, grid.largest, score_bound(grid, score_bits)) >= LIMIT:
        raise UnsupportedQuery("the public bounds of this dataset exceed exact arithmetic")


def global_scores(utilities: Integers, cap: int, score_bits: int) -> Integers:
    """⌊2^q · u / Δ⌋. All are zero if Δ = 0, because then the (floored) cap is 1 and u is 0."""
    return scaled_floor(utilities, cap, score_bits)


def dampened_scores(utilities: Integers, delta: SensitivityFunction, score_bits: int) -> Integers:
    """The dampened score D: how many steps δ(0), δ(1), … cover |u|, with the sign of u.

    The last step counts in the proportion in which it is needed.
    """
    return _signed(utilities, delta.passed(np.abs(utilities)), score_bits)


def flattened_scores(utilities: Integers, delta: SensitivityFunction, score_bits: int) -> Integers:
    """D with the largest δ(t) of all candidates: one sequence for all, so it keeps their order."""
    return _signed(utilities, delta.passed_by_largest(np.abs(utilities)), score_bits)


def shifted_scores(
    utilities: Integers, delta: SensitivityFunction, score_bits: int, direction: Direction
) -> Integers:
    """⌊2^q·(u − K)/Δ⌋ for direction 1, ⌊2^q·(u + K)/Δ⌋ for −1, with K = Σ_{t < T} (Δ − δ(t))."""
    if delta.horizon * delta.cap >= LIMIT:
        raise ValueError("the grid is too fine: T · Δ must stay below 2^62 for shifted scores")
    return scaled_floor(utilities - direction * delta.shortfall(), delta.cap, score_bits)


def _signed(utilities: Integers, passed: Integers, score_bits: int) -> Integers:
    """sign(u) · (steps + rest / width) on the grid of scores, rounded down."""
    steps, rest, width = passed
    sign = np.sign(utilities)
    dampened: Integers = sign * (steps << score_bits)
    return dampened + scaled_floor(sign * rest, width, score_bits)
