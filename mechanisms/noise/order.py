"""The k largest of a vector, in work that does not depend on its values.

Every pass runs to the end and branches on no value.
"""

import numpy as np

from mechanisms.kernels.compiled import compiled
from mechanisms.noise.addition import Integers
from mechanisms.noise.coins import ONE

#: Inverting the sign bit of int64 numbers gives uint64 numbers in the same order. So the k-th
#: largest number can be determined bit by bit.
_SIGN = np.uint64(1 << 63)


def largest_in_public_order(values: Integers, k: int) -> Integers:
    """Indices of the k largest, largest first; of equal values the one with the lower index."""
    threshold = kth_largest(values, k)
    above = np.empty(values.size, dtype=np.int64)
    tied = np.empty(values.size, dtype=np.int64)
    firm, _ = partition(values, threshold, above, tied)
    chosen = np.concatenate([above[:firm], tied[: k - firm]])
    ranked: Integers = chosen[np.argsort(-values[chosen], kind="stable")]
    return ranked


@compiled
def partition(values: Integers, threshold: int, above: Integers, tied: Integers) -> tuple[int, int]:
    """Write the indices of values above and at the threshold; return the number of each.

    The next index is always written and advanced by a comparison, so no branch depends on a value.
    """
    firm, ties = 0, 0
    for i in range(values.size):
        above[firm] = i
        firm += values[i] > threshold
        tied[ties] = i
        ties += values[i] == threshold
    return firm, ties


@compiled
def kth_largest(values: Integers, k: int) -> int:
    """The k-th largest of int64 values: one counting pass per bit, from the highest down."""
    largest = np.uint64(0)
    for bit in range(63, -1, -1):
        trial = largest | (ONE << np.uint64(bit))
        threshold = np.int64(trial ^ _SIGN)
        reached = 0
        for i in range(values.size):
            reached += values[i] >= threshold
        largest |= np.uint64(reached >= k) << np.uint64(bit)
    return np.int64(largest ^ _SIGN)  # type: ignore[return-value]  # numba returns an int
