"""Scores of context candidates: q = −N·H(Y | X) in whole numbers, scaled or dampened.

N is the number of records, Y the target and X a candidate for its context.

``global``: ⌊2^b·q / φ(N)⌋ with b public bits. Replacing a record moves q by at most φ(N), in either
direction. Adding one never raises the q of any candidate and lowers it by at most φ(N_max). Scores
that all move in one direction need half the noise, so ``contexts.ContextSampler`` doubles the rate.

``local``: dampening of u = N·(log₂|Y| − H(Y | X)) by δ(t), the largest over all candidates, so that
all share one sequence. With Ψ of ``entropy_table`` in grid steps, and M and Q of ``rarest_class``,
    LS(t) = max over cells of Ψ[M + Q] − Ψ[Q] + 2t + 1
bounds the change of q at distance t; 2t + 1 allows for rounding. Under replace LS(t) is δ(t).
Under add/remove a record also raises N·log₂|Y|, so δ(t) = max(log₂|Y|, LS(t) − log₂|Y|).

Source: Farias et al., Local Dampening, PVLDB 14(4), 2021, for the mechanism; δ is new here.
"""

from dataclasses import dataclass
from math import log2

import numpy as np

from mechanisms.kernels.context_widths import widest
from mechanisms.kernels.long_division import scaled_floor
from mechanisms.kernels.rarest_class import RarestPairs
from mechanisms.kernels.spans import FAR, PrefixSums, bisected
from mechanisms.model.following import follows_records
from mechanisms.model.sensitivity import Integers
from mechanisms.utilities.entropy_table import increments
from mechanisms.utilities.utility import Grid


@dataclass(frozen=True)
class ContextSensitivity:
    """δ(t) of all candidates together, in grid steps: admissible for u of every one of them.

    ``levels`` are the pairs (m, β) of ``rarest_class`` for all candidates, ``sums`` is Φ[0 … N] of
    ``entropy_table``, and ``unit`` is log₂|Y| in whole steps for a target Y. ``rows`` is the public
    bound N on records, ``cap`` the most that one of them moves a utility, and ``most_pairs`` the
    public bound on the number of pairs.
    """

    levels: RarestPairs
    sums: Integers
    unit: int
    replace: bool
    cap: int
    rows: int
    most_pairs: int

    @property
    def limit(self) -> int:
        """The final value of δ."""
        return self.cap if self.replace else max(self.unit, self.cap - self.unit, 1)

    @follows_records(
        "pairs that never decide are dropped", lambda self, t: t.size * (self.most_pairs + 1) + 1
    )
    def at(self, t: Integers) -> Integers:
        """δ at each of these distances, in their shape (distances,)."""
        _, others, rarest = self.levels
        widths = widest(others, rarest, self.sums, t, self.rows, self.replace) + 2 * t + 1
        largest: Integers = np.clip(widths, 1, self.cap)
        largest = np.where(t < self.rows, largest, self.cap)
        if self.replace:
            return largest
        moved: Integers = np.maximum(np.maximum(largest - self.unit, self.unit), 1)
        return moved


def unit_steps(classes: int, grid: Grid) -> int:
    """log₂ of the number of classes, rounded to whole grid steps.

    It is public. Its rounding shifts the utilities of all candidates by the same amount.
    """
    return round(log2(classes) * (1 << grid.bits))


@follows_records("pairs that never decide are dropped", lambda largest: 64 * (largest.size + 20))
def merged_purest(largest: Integers) -> RarestPairs:
    """The pairs (m, β) that determine δ, from the largest m of every β in ``purest_levels``."""
    rarest = np.flatnonzero(largest >= 0).astype(np.int64)
    offsets = np.array([0, rarest.size], dtype=np.int64)
    return RarestPairs(offsets, largest[rarest], rarest).merged()


def largest_change(rows: int, grid: Grid) -> int:
    """The most grid steps, and at least one, that a record moves q = −N·H(Y | X)."""
    return max(1, int(increments(rows - 1, rows, grid.bits)[0]))


def dampened(utilities: Integers, delta: ContextSensitivity, score_bits: int) -> Integers:
    """⌊2^score_bits · D⌋, where D is the signed number of steps δ(0), δ(1), … that cover |u|.

    δ is computed at all distances below the public bound on records, and is constant from there on.
    How many of them a score needs is private.
    """
    goals = np.abs(utilities)
    widths = np.append(delta.at(np.arange(delta.rows)), delta.limit)
    sums, start = PrefixSums.of(widths), np.zeros_like(goals)
    steps = bisected(goals, lambda t: sums.between(start, t), FAR)
    rest = goals - sums.between(start, steps)
    sign = np.sign(utilities)
    scores: Integers = sign * (steps << score_bits)
    return scores + scaled_floor(sign * rest, widths[np.minimum(steps, delta.rows)], score_bits)
