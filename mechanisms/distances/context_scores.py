"""Scores of context candidates: q = −N·H(Y | X) in whole numbers, scaled or dampened.

``global``: ⌊2^b·q / φ(N)⌋. Replacing a record moves q by at most φ(N), in either direction. Adding
one never raises the q of any candidate and lowers it by at most φ(N_max). Scores that all move in
one direction need half the noise; ``contexts.ContextSampler`` spends that on a doubled rate.

``local``: dampening of u = N·(log₂|Y| − H(Y | X)) by δ(t), the largest over all candidates, so that
all share one sequence. With r = n_x − n_xy and Ψ of ``entropy_table``, in grid steps,
    LS(t) = max over cells of Ψ[M + Q] − Ψ[Q] + 2t + 1, M and Q as in ``rarest_class``,
bounds the change of q t changes away; 2t + 1 is the slack of rounding. Under replace that is δ.
Under add/remove a record also raises N·log₂|Y|, so δ(t) = max(log₂|Y|, LS(t) − log₂|Y|).

Source: Farias et al., Local Dampening, PVLDB 14(4), 2021, for the mechanism; δ is new here.
"""

from dataclasses import dataclass
from math import log2

import numpy as np

from mechanisms.kernels.long_division import scaled_floor
from mechanisms.kernels.rarest_class import RarestPairs
from mechanisms.model.sensitivity import Integers
from mechanisms.utilities.entropy_table import increments
from mechanisms.utilities.utility import Grid

#: Widths computed at a time, in pairs times distances.
_FIRST, _LARGEST = 1 << 6, 1 << 18


@dataclass(frozen=True)
class ContextSensitivity:
    """δ(t) of all candidates together, in grid steps: admissible for u of every one of them.

    ``levels`` are (m, β) of one merged candidate, ``sums`` Φ[0 … N]. ``unit`` is the whole number
    of steps nearest to log₂|Y|, ``cap`` is Ψ[N − 1] and ``rows`` the public N.
    """

    levels: RarestPairs
    sums: Integers
    unit: int
    replace: bool
    cap: int
    rows: int

    @property
    def limit(self) -> int:
        """The final value of δ."""
        return self.cap if self.replace else max(self.unit, self.cap - self.unit, 1)

    def at(self, t: Integers) -> Integers:
        """δ at each of these distances, in their shape (distances,)."""
        beta = self.levels.rarest[:, None]
        taken = np.minimum(t, beta)
        rest = beta - taken
        others = self.levels.others[:, None] + (t if self.replace else t - taken)
        end = np.minimum(others + rest, self.rows - 1)
        widths = self._increment(end) - self._increment(rest) + 2 * t + 1
        largest: Integers = np.clip(widths.max(axis=0), 1, self.cap)
        largest = np.where(t < self.rows, largest, self.cap)
        if self.replace:
            return largest
        moved: Integers = np.maximum(np.maximum(largest - self.unit, self.unit), 1)
        return moved

    def _increment(self, x: Integers) -> Integers:
        increment: Integers = self.sums[x + 1] - self.sums[x]
        return increment


def unit_steps(classes: int, grid: Grid) -> int:
    """A whole number of grid steps near log₂|Y|.

    It is a public constant, whose last digits only move the origin of all utilities together.
    """
    return round(log2(classes) * (1 << grid.bits))


def merged_purest(largest: Integers) -> RarestPairs:
    """The pairs that determine δ, from the largest m of every β (``subsets.purest_levels``)."""
    rarest = np.flatnonzero(largest >= 0).astype(np.int64)
    offsets = np.array([0, rarest.size], dtype=np.int64)
    return RarestPairs(offsets, largest[rarest], rarest).merged()


def largest_change(rows: int, grid: Grid) -> int:
    """Ψ[N − 1]: the most that a record moves q, and at least one step."""
    return max(1, int(increments(rows - 1, rows, grid.bits)[0]))


def dampened(utilities: Integers, delta: ContextSensitivity, score_bits: int) -> Integers:
    """⌊2^score_bits · D⌋ of each candidate: the number of steps δ(0), δ(1), … that cover |u|,
    signed."""
    goals = np.abs(utilities)
    steps, rest = np.zeros_like(goals), np.zeros_like(goals)
    width = np.full_like(goals, delta.limit)
    uncovered = np.ones(goals.shape, dtype=bool)
    passed, start, size = 0, 0, _FIRST
    while uncovered.any():
        widths = delta.at(np.arange(start, start + size, dtype=np.int64))
        ends = passed + np.cumsum(widths)
        # The first step whose end reaches the goal is the step in which the goal lies.
        places = np.searchsorted(ends, goals, side="left")
        here = uncovered & (places < size)
        place = places[here]
        steps[here], width[here] = start + place, widths[place]
        rest[here] = goals[here] - (ends[place] - widths[place])
        uncovered &= ~here
        passed, start = int(ends[-1]), start + size
        if widths[-1] == delta.limit:
            remaining = goals[uncovered] - passed
            whole = (remaining - 1) // delta.limit
            steps[uncovered], rest[uncovered] = start + whole, remaining - whole * delta.limit
            break
        size = max(_FIRST, min(2 * size, _LARGEST // delta.levels.rarest.size))
    sign = np.sign(utilities)
    scores: Integers = sign * (steps << score_bits)
    return scores + scaled_floor(sign * rest, width, score_bits)
