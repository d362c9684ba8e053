"""δ of a weighted sum of rates, walked by runs of equal steps.

A weighted sum by itself says what δ(t) is, but a dampened score of a rate takes up to as many
steps as there are records. Every rate is a whole number over a falling divisor, so its δ stays the
same for long runs of t: there are a few times 2^{g/2} runs, however many records.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechanisms.kernels.compiled import compiled
from mechanisms.objectives.sum_sensitivity import SumSensitivity
from mechanisms.sensitivity import Integers
from mechanisms.utilities.rate_sensitivity import RateSensitivity, step
from mechanisms.utilities.utility import Measured


@dataclass(frozen=True)
class RatesSensitivity:
    """``sums`` as it is, with its walk; made by ``walked``. Implements ``WalkedSensitivity``."""

    sums: SumSensitivity
    #: (members, candidates) of each; (members, 4): factor, bits, cap, part; by part.
    hits: Integers
    totals: Integers
    members: Integers
    replace: bool

    @property
    def cap(self) -> int:
        return self.sums.cap

    @property
    def horizon(self) -> int:
        return self.sums.horizon

    def at(self, t: int, candidates: Integers) -> Integers:
        return self.sums.at(t, candidates)

    def largest(self, t: int) -> int:
        return self.sums.largest(t)

    def shortfall(self) -> Integers:
        return self.sums.shortfall()

    def passed(self, goals: Integers) -> Integers:
        return self._walk(goals, False)

    def passed_by_largest(self, goals: Integers) -> Integers:
        return self._walk(goals, True)

    def _walk(self, goals: Integers, by_largest: bool) -> Integers:
        order = np.argsort(goals, kind="stable")
        return walk(
            self.hits,
            self.totals,
            self.members,
            self.replace,
            self.cap,
            self.horizon,
            goals,
            order,
            by_largest,
        )


def walked(measured: Measured) -> Measured:
    """The same for a weighted sum of rates whose members exclude one another or all add up."""
    sums = measured.delta
    assert isinstance(sums, SumSensitivity)
    rows, hits, totals, replace = [], [], [], False
    for group in sums.groups:
        # One group: its parts exclude one another. Several: each has one part, and they add up.
        assert len(sums.groups) == 1 or len(group) == 1
        for part, members in enumerate(group):
            for member in members:
                delta = member.delta
                assert isinstance(delta, RateSensitivity)
                rows.append((member.factor, delta.bits, delta.cap, part))
                hits.append(delta.hits)
                totals.append(delta.totals)
                replace = delta.replace
    found = RatesSensitivity(
        sums, np.stack(hits), np.stack(totals), np.array(rows, dtype=np.int64), replace
    )
    return Measured(measured.utilities, found)


@compiled
def last_of_run(hits: int, total: int, bits: int, replace: bool, cap: int, t: int) -> int:
    """The last t' ≥ t with the same δ, in ``rate_sensitivity.step``; 2⁶² when there is no last."""
    forever = 1 << 62
    value = step(hits, total, bits, replace, cap, t)
    if value >= cap or (total == 0 and not replace):
        return forever
    # The smallest divisor at which ⌈unit / divisor⌉ is still the value.
    divisor = ((1 << bits) - 1) // value + 1
    fewer = min(hits, total - hits)
    if replace:
        return total - divisor if divisor > 1 else forever
    if fewer == 0:
        return total + 1 - divisor if divisor > 2 else forever
    if t >= fewer:
        return total - divisor if divisor > 2 else forever
    needed = (((total - fewer) << bits) - 1) // value + 1
    left = int((1.0 + np.sqrt(1.0 + 4.0 * needed)) / 2.0)
    # The root in doubles is near the smallest number with left·(left − 1) ≥ needed.
    while left * (left - 1) >= needed:
        left -= 1
    while left * (left - 1) < needed:
        left += 1
    return min(fewer - 1, total - left)


@compiled
def combined(
    hits: Integers, totals: Integers, members: Integers, replace: bool, candidate: int, t: int
) -> int:
    """δ(t) of one candidate: the largest of the sums of its parts."""
    first, largest = 0, 0
    while first < len(members):
        after, total = first, 0
        while after < len(members) and members[after, 3] == members[first, 3]:
            hit, of = hits[after, candidate], totals[after, candidate]
            bits, cap = members[after, 1], members[after, 2]
            total += members[after, 0] * step(hit, of, bits, replace, cap, t)
            after += 1
        largest = max(largest, total)
        first = after
    return largest


@compiled
def last_equal(
    hits: Integers, totals: Integers, members: Integers, replace: bool, candidate: int, t: int
) -> int:
    """A t' ≥ t up to which no member's δ changes."""
    end = 1 << 62
    for i in range(len(members)):
        hit, of = hits[i, candidate], totals[i, candidate]
        end = min(end, last_of_run(hit, of, members[i, 1], replace, members[i, 2], t))
    return end


@compiled
def walk(
    hits: Integers,
    totals: Integers,
    members: Integers,
    replace: bool,
    cap: int,
    horizon: int,
    goals: Integers,
    order: Integers,
    by_largest: bool,
) -> Integers:
    """``WalkedSensitivity`` of ``goals``, ascending in ``order``; with the largest δ each goes on
    where the one before it stopped."""
    found = np.zeros((3, len(goals)), np.int64)
    t, passed = 0, 0
    for i in order:
        if not by_largest:
            t, passed = 0, 0
        first, after = (0, hits.shape[1]) if by_largest else (i, i + 1)
        left, before = goals[i] - passed, 0
        while True:
            width, end = cap, 1 << 62
            if t < horizon:
                width, end = 0, t
                for r in range(first, after):
                    width = max(width, combined(hits, totals, members, replace, r, t))
                if width == before:
                    # Steps begin to repeat: how long they do is worth finding out.
                    end = horizon - 1
                    for r in range(first, after):
                        end = min(end, last_equal(hits, totals, members, replace, r, t))
            before, run = width, end - t + 1
            # Steps of the run that are passed in full: by division, for products may not fit.
            whole = (left - 1) // width if left > 0 else 0
            if whole < run:
                break
            t, passed, left = t + run, passed + run * width, left - run * width
        found[0, i], found[1, i], found[2, i] = t + whole, left - whole * width, width
        t, passed = t + whole, passed + whole * width
    return found
