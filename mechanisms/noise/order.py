"""The k largest of a vector, ties in random order, in work that does not depend on its values.

Every pass runs to the end and branches on no value. Only the order of equal values takes words,
about two for each of the k.
"""

import numpy as np

from mechanisms.kernels.compiled import compiled
from mechanisms.kernels.radix import ascending
from mechanisms.model.randomness import Words, WordSource
from mechanisms.noise.addition import Integers
from mechanisms.noise.coins import EXHAUSTED, ONE, below

#: Exclusive or with this bit maps int64 to uint64 in the same order.
_SIGN = np.uint64(1 << 63)


def largest_in_order(values: Integers, k: int, source: WordSource) -> Integers:
    """Indices of the k largest, largest first; equal values in uniformly random order.

    If equal values compete for the last positions, the winners are uniform among them.
    """
    threshold = values.max() if k == 1 else kth_largest(values, k)
    above = np.empty(values.size, dtype=np.int64)
    tied = np.empty(values.size, dtype=np.int64)
    firm, ties = partition(values, threshold, above, tied)
    chosen = np.concatenate([above[:firm], shuffled(tied[:ties], k - firm, source)])
    chosen = shuffled(chosen, k, source)
    ranked: Integers = chosen[ascending(-values[chosen])]
    return ranked


def largest_in_public_order(values: Integers, k: int) -> Integers:
    """Indices of the k largest, largest first; of equal values the one with the lower index."""
    threshold = kth_largest(values, k)
    above = np.empty(values.size, dtype=np.int64)
    tied = np.empty(values.size, dtype=np.int64)
    firm, _ = partition(values, threshold, above, tied)
    chosen = np.concatenate([above[:firm], tied[: k - firm]])
    ranked: Integers = chosen[np.argsort(-values[chosen], kind="stable")]
    return ranked


def shuffled(items: Integers, count: int, source: WordSource) -> Integers:
    """``count`` distinct ``items``, uniform among all ordered choices; one item needs no word."""
    words = source.words(2 * count + 64)
    while True:
        front = items.copy()
        if shuffle_front(front, count, words) != EXHAUSTED:
            return front[:count]
        words = np.concatenate([words, source.words(words.size)])


@compiled
def shuffle_front(items: Integers, count: int, words: Words) -> int:
    """Move a uniform ordered choice to items[:count]; the number of words used, or EXHAUSTED."""
    at = 0
    for j in range(count):
        rest = np.uint64(items.size - j)
        mask = rest - ONE
        for shift in (1, 2, 4, 8, 16, 32):
            mask |= mask >> np.uint64(shift)
        draw, at = below(rest, mask, words, at)
        if at < 0:
            return at
        i = j + np.int64(draw)
        items[i], items[j] = items[j], items[i]
    return at


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
