"""Sums of consecutive steps as differences of prefix sums, and how many steps cover a goal.

A prefix sum may leave 64 bits and wrap around. The same sum in doubles tells whether a difference
is beyond every goal; where it is not, the wrapped difference is exact. Sums are cut off at ``FAR``,
the largest goal, so comparisons with goals stay right and two cut sums may be added.
"""

from collections.abc import Callable
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.compiled import compiled
from mechanisms.kernels.long_division import LIMIT
from mechanisms.model.sensitivity import Integers

#: The largest goal. A goal is a number that a sum of sensitivities δ(0) + δ(1) + … is to reach. A
#: sum above this is stored as this number, which changes no comparison with a goal.
FAR = LIMIT - 1
#: The number of candidates that a binary search processes together, so that their numbers stay in
#: the fastest cache.
_BLOCK = 256
#: Each sum is computed in 64-bit integers, which may overflow, and in doubles. If the sum in
#: doubles is above this, the exact sum exceeds every goal. Otherwise the exact sum fits 64 bits,
#: because sums in doubles err by far less than 2⁶¹.
_CERTAIN = 1.5 * LIMIT


class PrefixSums(NamedTuple):
    """Prefix sums of whole numbers ≥ 1. Beyond the listed numbers, every number is ``last``."""

    exact: Integers
    rough: NDArray[np.float64]
    last: int

    @classmethod
    def of(cls, values: Integers) -> Self:
        """The prefix sums of an infinite sequence.

        The sequence is ``values``, int64 (m,) with m ≥ 1, whose last value is repeated without end.
        """
        exact = np.zeros(values.size + 1, dtype=np.int64)
        rough = np.zeros(values.size + 1)
        np.cumsum(values, out=exact[1:])
        np.cumsum(values, out=rough[1:], dtype=np.float64)
        return cls(exact, rough, int(values[-1]))

    def between(self, starts: Integers, ends: Integers) -> Integers:
        """min(FAR, Σ of the values with start ≤ place < end) of each pair, int64 (n,)."""
        return _between(*self, starts, ends)


@compiled
def _between(
    exact: Integers, rough: NDArray[np.float64], last: int, starts: Integers, ends: Integers
) -> Integers:
    sums = np.empty(len(starts), np.int64)
    for i in range(len(starts)):
        sums[i] = _sum(exact, rough, last, starts[i], ends[i])
    return sums


@compiled
def _sum(exact: Integers, rough: NDArray[np.float64], last: int, first: int, beyond: int) -> int:
    listed = len(exact) - 1
    start, end = min(first, listed), min(beyond, listed)
    repeated = (beyond - end) - (first - start)
    wide = rough[end] - rough[start] + float(repeated) * float(last)
    # A sum that surely exceeds every goal is replaced by the largest goal, FAR, without a branch.
    # Its exact value ``near`` may have overflowed 64 bits. This does no harm, because near + (FAR −
    # near) is FAR whatever ``near`` is.
    far = np.int64(wide > _CERTAIN)
    near = exact[end] - exact[start] + repeated * last
    return min(near + far * (FAR - near), FAR)  # type: ignore[no-any-return]  # an int in numba


class TwoParts(NamedTuple):
    """Per candidate, sums of one list up to a turn and of another from there on.

    Candidate i begins at place ``ones``[i] of ``one``, and after t ≥ ``turns``[i] steps it is at
    place ``others``[i] + t of ``other``.
    """

    one: PrefixSums
    ones: Integers
    other: PrefixSums
    others: Integers
    turns: Integers


@compiled
def sums_in_two(parts: TwoParts, t: Integers) -> Integers:
    """min(FAR, the sum of the first t[i] steps) of each candidate i, int64 (n,)."""
    sums = np.empty(len(t), np.int64)
    for i in range(len(t)):
        sums[i] = _sum_in_two(parts, i, t[i])
    return sums


@compiled
def bisected_in_two(goals: Integers, parts: TwoParts, horizon: int) -> Integers:
    """``bisected`` with ``sums_in_two``, in one piece.

    The sum up to its turn says on which of the two lists a candidate is searched, so each round
    reads one list. Candidates are searched in blocks, whose numbers stay in the fastest cache.
    """
    one, other = parts.one, parts.other
    exact = np.concatenate((one.exact, other.exact))
    rough = np.concatenate((one.rough, other.rough))
    # The search finds how many steps of a candidate add up to less than its goal. It reads one of
    # two lists of prefix sums for each candidate. ``passed`` is the number of steps before that
    # list, ``first`` the position in the list where the candidate begins, ``end`` the last
    # position, and ``repeated`` the value of every step beyond it. ``room`` is the most steps in
    # the list, ``goal`` the rest of the goal, and ``steps`` the number of steps so far.
    passed, first, end, repeated, room, goal, steps = np.empty((7, _BLOCK), np.int64)
    places = np.empty(len(goals), np.int64)
    most = 1
    while most <= horizon:
        most <<= 1
    for start in range(0, len(goals), _BLOCK):
        size = min(_BLOCK, len(goals) - start)
        for i in range(size):
            turn = min(parts.turns[start + i], horizon)
            listed = len(one.exact) - 1
            early = min(parts.ones[start + i], listed)
            reached = _sum(one.exact, one.rough, one.last, early, early + turn)
            late = np.int64(reached < goals[start + i])
            after = min(parts.others[start + i] + turn, len(other.exact) - 1) + len(one.exact)
            passed[i] = late * turn
            first[i] = early + late * (after - early)
            end[i] = listed + late * len(other.exact)
            repeated[i] = one.last + late * (other.last - one.last)
            room[i] = turn + late * (horizon - 2 * turn)
            goal[i] = goals[start + i] - late * reached
            steps[i] = 0
        top = most
        while top > 1:
            top >>= 1
            for i in range(size):
                further = steps[i] + top
                place = first[i] + min(further, room[i])
                last = min(place, end[i])
                wide = rough[last] - rough[first[i]] + float(place - last) * float(repeated[i])
                near = exact[last] - exact[first[i]] + (place - last) * repeated[i]
                below = (wide <= _CERTAIN) & (near < goal[i]) & (further <= room[i])
                steps[i] += top * np.int64(below)
        for i in range(size):
            places[start + i] = passed[i] + steps[i]
    return places


@compiled
def _sum_in_two(parts: TwoParts, i: int, t: int) -> int:
    one, other, turn = parts.one, parts.other, min(t, parts.turns[i])
    first, second = parts.ones[i], parts.others[i]
    early = _sum(one.exact, one.rough, one.last, first, first + turn)
    late = _sum(other.exact, other.rough, other.last, second + turn, second + t)
    # A candidate's sum has one part from each of two lists. Each part is below 2⁶², so the sum of
    # both fits 64 bits.
    return min(early + late, FAR)


def weighted_sums(terms: list[tuple[int, Integers]]) -> Integers:
    """min(FAR, Σ factor · sum) of sums cut off at FAR, for factors ≥ 1."""
    size = terms[0][1].size
    wide, near = np.zeros(size), np.zeros(size, dtype=np.int64)
    for factor, sums in terms:
        _add(factor, sums, wide, near)
    _cut_off(wide, near)
    return near


@compiled
def _add(factor: int, sums: Integers, wide: NDArray[np.float64], near: Integers) -> None:
    for i in range(len(sums)):
        wide[i] += float(factor) * float(sums[i])
        near[i] += factor * sums[i]


@compiled
def _cut_off(wide: NDArray[np.float64], near: Integers) -> None:
    for i in range(len(near)):
        # A sum that surely exceeds every goal is replaced by the largest goal, FAR, without a
        # branch. Its exact value may have overflowed 64 bits. This does no harm, because near +
        # (FAR − near) is FAR whatever ``near`` is.
        far = np.int64(wide[i] > _CERTAIN)
        near[i] = min(near[i] + far * (FAR - near[i]), FAR)


def bisected(goals: Integers, before: Callable[[Integers], Integers], horizon: int) -> Integers:
    """The largest t ≤ ``horizon`` with before(t) < goal for every goal, and 0 where none is.

    ``before`` rises with t. The rounds, ⌈log₂(horizon + 1)⌉, and the work of each are public.
    """
    places = np.zeros_like(goals)
    for bit in reversed(range(horizon.bit_length())):
        further = places + (1 << bit)
        below = before(np.minimum(further, horizon)) < goals
        places = np.where(below & (further <= horizon), further, places)
    return places
