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

#: The largest goal that a sum is compared with. A larger sum is stored as this number.
FAR = LIMIT - 1
#: A sum of doubles above this proves that the true sum exceeds every goal. Below it the sum fits 64
#: bits: doubles err by far less than LIMIT / 2.
_CERTAIN = 1.5 * LIMIT


class PrefixSums(NamedTuple):
    """Prefix sums of whole numbers ≥ 1; ``last`` continues them for ever."""

    exact: Integers
    rough: NDArray[np.float64]
    last: int

    @classmethod
    def of(cls, values: Integers) -> Self:
        """The sums of ``values``, int64 (m,) with m ≥ 1, the last of which repeats."""
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
    listed = len(exact) - 1
    sums = np.empty(len(starts), np.int64)
    for i in range(len(starts)):
        start, end = min(starts[i], listed), min(ends[i], listed)
        repeated = (ends[i] - end) - (starts[i] - start)
        wide = rough[end] - rough[start] + float(repeated) * float(last)
        # A sum that surely exceeds every goal becomes FAR. Its value in 64 bits may have
        # overflowed, which the subtraction below cancels.
        far = np.int64(wide > _CERTAIN)
        near = exact[end] - exact[start] + repeated * last
        sums[i] = min(near + far * (FAR - near), FAR)
    return sums


def weighted_sums(terms: list[tuple[int, Integers]]) -> Integers:
    """min(FAR, Σ factor · sum) of sums cut off at FAR, for factors ≥ 1."""
    wide = sum(float(factor) * sums.astype(np.float64) for factor, sums in terms)
    with np.errstate(over="ignore"):
        near = sum(factor * sums for factor, sums in terms)
    return np.where(wide > _CERTAIN, FAR, np.minimum(near, FAR))


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
