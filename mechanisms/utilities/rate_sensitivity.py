"""The sensitivity function of a rate hits/total, one half where there is nothing to hit.

With s the smaller and M the larger of hits and misses, P = s + M, the exact local sensitivities:
    add/remove  1/2 where P = 0;  1/max(P − t + 1, 2) where s = 0;  else
                M/((P − t)(P − t − 1)) for t < s,  1/max(P − t, 2) for t ≥ s
    replace     1/max(P − t, 1), whatever the hits
Removing the rarer kind first is what makes the rate move most; a replacement turns a hit into a
miss. In steps each is rounded up as a whole. Sums over t go by runs of equal terms: a few times
2^{g/2} of them, however many records there are.

Source: Differentially Private Multi-Objective Selection, section 6.2.3, with the branches, the
floors and the relation put right (as printed it is not admissible).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechanisms.domains import NeighbouringRelation
from mechanisms.facts import SensitivityFacts
from mechanisms.kernels.compiled import compiled
from mechanisms.sensitivity import Integers

RATE_FACTS = {
    NeighbouringRelation.ADD_REMOVE: SensitivityFacts(
        cap="1/2",
        function=(
            "M / ((P - t)(P - t - 1)) for t < s, 1/max(P - t, 2) from s on; "
            "1/max(P - t + 1, 2) where s = 0, 1/2 where P = 0"
        ),
        horizon="N + 1",
        terms="P: records that can be hit; s, M: the smaller and the larger of hits and misses; "
        "N: max_rows",
    ),
    NeighbouringRelation.REPLACE: SensitivityFacts(
        cap="1",
        function="1/max(P - t, 1)",
        horizon="N",
        terms="P: records that can be hit; N: rows",
    ),
}


@dataclass(frozen=True)
class RateSensitivity:
    """δ of all candidates; ``hits`` ≤ ``totals``, int64 (n,), totals · 2^bits < 2⁶²."""

    hits: Integers
    totals: Integers
    bits: int
    replace: bool
    cap: int
    horizon: int

    def at(self, t: int, candidates: Integers) -> Integers:
        return steps(
            self.hits[candidates], self.totals[candidates], self.bits, self.replace, self.cap, t
        )

    def largest(self, t: int) -> int:
        return int(steps(self.hits, self.totals, self.bits, self.replace, self.cap, t).max())

    def shortfall(self) -> Integers:
        return shortfalls(self.hits, self.totals, self.bits, self.replace, self.cap)

    def passed(self, goals: Integers) -> Integers:
        return self._walk(goals, False)

    def passed_by_largest(self, goals: Integers) -> Integers:
        return self._walk(goals, True)

    def _walk(self, goals: Integers, by_largest: bool) -> Integers:
        return walk(
            self.hits,
            self.totals,
            self.bits,
            self.replace,
            self.cap,
            self.horizon,
            goals,
            np.argsort(goals, kind="stable"),
            by_largest,
        )


@compiled
def step(hits: int, total: int, bits: int, replace: bool, cap: int, t: int) -> int:
    """δ(t) of one candidate, in [1, cap]."""
    unit = 1 << bits
    if replace:
        below = max(total - t, 1)
    elif total == 0:
        below = 2
    else:
        fewer = min(hits, total - hits)
        if fewer == 0:
            below = max(total - t + 1, 2)
        elif t < fewer:
            unit = (total - fewer) << bits
            below = (total - t) * (total - t - 1)
        else:
            below = max(total - t, 2)
    return max(1, min(cap, (unit - 1) // below + 1))


@compiled
def steps(hits: Integers, totals: Integers, bits: int, replace: bool, cap: int, t: int) -> Integers:
    found = np.empty(len(hits), np.int64)
    for i in range(len(hits)):
        found[i] = step(hits[i], totals[i], bits, replace, cap, t)
    return found


@compiled
def shortfalls(hits: Integers, totals: Integers, bits: int, replace: bool, cap: int) -> Integers:
    """K of every candidate; each divisor k of its δ below occurs once before T."""
    short = np.zeros(len(hits), np.int64)
    for i in range(len(hits)):
        total, fewer = totals[i], min(hits[i], totals[i] - hits[i])
        if total == 0:
            continue
        if replace:
            short[i] = missing_inverses(1 << bits, 1, total, cap)
        elif fewer == 0:
            short[i] = missing_inverses(1 << bits, 2, total + 1, cap)
        else:
            most = total - fewer
            short[i] = missing_inverses(1 << bits, 2, most, cap)
            short[i] += missing_inverse_pairs(most << bits, most + 1, total, cap)
    return short


@compiled
def missing_inverses(unit: int, first: int, last: int, cap: int) -> int:
    """Σ over first ≤ k ≤ last of max(0, cap − ⌈unit/k⌉)."""
    short, k = 0, first
    while k <= last:
        value = (unit - 1) // k + 1
        end = last if value == 1 else min((unit - 1) // (value - 1), last)
        short += (end - k + 1) * max(cap - value, 0)
        k = end + 1
    return short


@compiled
def missing_inverse_pairs(unit: int, first: int, last: int, cap: int) -> int:
    """Σ over first ≤ k ≤ last of max(0, cap − ⌈unit/(k(k − 1))⌉), first ≥ 2."""
    short, k = 0, first
    while k <= last:
        value = (unit - 1) // (k * (k - 1)) + 1
        end = last
        if value > 1:
            # The last k of this value: the largest with k(k − 1) ≤ bound. The root in doubles
            # is near it, integers decide.
            bound = (unit - 1) // (value - 1)
            end = int((1.0 + np.sqrt(1.0 + 4.0 * bound)) / 2.0)
            while end * (end - 1) > bound:
                end -= 1
            while (end + 1) * end <= bound:
                end += 1
            end = min(end, last)
        short += (end - k + 1) * max(cap - value, 0)
        k = end + 1
    return short


@compiled
def walk(
    hits: Integers,
    totals: Integers,
    bits: int,
    replace: bool,
    cap: int,
    horizon: int,
    goals: Integers,
    order: Integers,
    by_largest: bool,
) -> Integers:
    """``WalkedSensitivity`` of ``goals``, ascending in ``order``; with the largest δ each goes on
    where the one before it stopped."""
    found = np.empty((3, len(goals)), np.int64)
    t, passed = 0, 0
    for i in order:
        if not by_largest:
            t, passed = 0, 0
        left, width = goals[i] - passed, cap
        while t < horizon:
            width = 0
            for r in range(len(hits) if by_largest else 1):
                which = r if by_largest else i
                width = max(width, step(hits[which], totals[which], bits, replace, cap, t))
            if left <= width or width == cap:
                break
            passed, left = passed + width, left - width
            t += 1
        # From where the cap is reached on every step is as wide.
        whole = (left - 1) // cap if width == cap and left > cap else 0
        found[0, i], found[1, i], found[2, i] = t + whole, left - whole * cap, width
    return found
