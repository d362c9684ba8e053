"""Strict dominance, counted for all points: how many others are larger in every coordinate.

Coordinates become ranks first, so later steps compare positions in sorted lists and ties never
count. With two coordinates one sweep counts all points in O(n log n). Points enter by falling first
coordinate, and a Fenwick tree over a bitmap counts the entered points that are larger in the second
coordinate. With m ≥ 3 coordinates, bitmaps hold the points that are larger in each: n²·m bits in
all, processed in blocks of counted points.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.bits import set_bits
from mechanisms.kernels.compiled import compiled
from mechanisms.kernels.radix import ascending
from mechanisms.model.executor import Executor
from mechanisms.model.following import follows_records

Integers = NDArray[np.int64]
Places = NDArray[np.int32]

#: The largest n²·m for n points of m ≥ 3 coordinates: one core counts possible and certain
#: dominators in about a second.
LARGEST_WORK = 2 * 10**10
#: In the sorted list of each coordinate, every 512th position stores a bitmap of all later points.
_STRIDE = 512


def dominance_work(points: int, coordinates: int) -> int:
    """The work that ``LARGEST_WORK`` bounds; 0 where sorting suffices."""
    return points * points * coordinates if coordinates > 2 else 0


def reads_of_blocks(points: int, coordinates: int) -> int:
    """How many positions and words of bitmaps one count reads, of points of m ≥ 3 coordinates.

    For each point and coordinate these are one stride and one bitmap.
    """
    return points * coordinates * (min(points, _STRIDE) + points // 64 + 1)


def dominators(values: Integers, executor: Executor) -> Places:
    """For each point the number of others that are strictly larger in all coordinates, int32 (n,).

    ``values`` has shape (coordinates, n).
    """
    orders = [ascending(row) for row in values]
    same = [
        _Rank(order, order, _below(row, order, row, order))
        for row, order in zip(values, orders, strict=True)
    ]
    return _counts([same], executor)[0]


def interval_dominators(
    lower: Integers, upper: Integers, executor: Executor
) -> tuple[Places, Places]:
    """How many points *may* and how many *must* dominate each point, if only boxes are known.

    Each point lies strictly between its ``lower`` and ``upper`` end in every coordinate.

    Args:
        lower, upper: shape (coordinates, n), lower < upper everywhere.

    Returns: two int32 arrays (n,). For each r, the number of others r' with upper(r') > lower(r) in
        all coordinates, and the number with lower(r') > upper(r) in all.
    """
    pairs = list(zip(lower, upper, strict=True))
    orders = executor.map(ascending, [row for pair in pairs for row in pair])
    may, must = [], []
    for (low, high), by_low, by_high in zip(pairs, orders[::2], orders[1::2], strict=True):
        may.append(_Rank(by_high, by_low, _below(high, by_high, low, by_low)))
        must.append(_Rank(by_low, by_high, _below(low, by_low, high, by_high)))
    possible, certain = _counts([may, must], executor)
    # Every box is non-empty, so each point counts as a possible dominator of itself and is
    # subtracted.
    return possible - np.int32(1), certain


@dataclass(frozen=True)
class _Rank:
    """One coordinate: r' exceeds query r if its position in ``points`` is ``below[r]`` or more."""

    #: The numbers of all points, by rising value of this coordinate.
    points: Integers
    #: The numbers of the same points as queries, which are compared with all others, by rising
    #: value of their own.
    queries: Integers
    #: For each query, the number of points whose value is at most the value of the query.
    below: Places


def _counts(sides: list[list[_Rank]], executor: Executor) -> list[Places]:
    """For each side, the number of points above each query in all of its coordinates."""
    if len(sides[0]) == 1:
        return [np.int32(rank.below.size) - rank.below for (rank,) in sides]
    if len(sides[0]) == 2:
        return executor.map(lambda side: _swept(*side), sides)
    return [_blocked(side, executor) for side in sides]


def _swept(first: _Rank, second: _Rank) -> Places:
    return _sweep(first.points, first.queries, first.below, _places(second.points), second.below)


def _blocked(side: list[_Rank], executor: Executor) -> Places:
    orders = np.stack([rank.points for rank in side])
    below = np.stack([rank.below for rank in side])
    suffixes = np.stack(executor.map(lambda order: _suffixes(order, _STRIDE), orders))
    size = below.shape[1]
    step = -(-size // (4 * executor.workers))
    parts = executor.map(
        lambda start: _count_block(
            orders, below, suffixes, _STRIDE, start, min(start + step, size)
        ),
        range(0, size, step),
    )
    return np.concatenate(parts)


@compiled
def widen(
    values: Integers, sums: Integers, steps: Integers, cap: int, largest: int, box: Integers
) -> None:
    """Add min(steps, cap) to ``sums`` and set ``box`` (2, n) to values ∓ sums.

    With |values| ≤ largest < 2⁶² nothing leaves 64 bits: sums stop at 2·largest + 1, and ends of
    boxes at ±(largest + 1). Beyond these values every comparison is decided and stays decided.
    """
    edge = largest + 1
    for r in range(len(values)):
        sums[r] += min(steps[r], cap, largest + edge - sums[r])
        box[0, r] = values[r] - min(sums[r], edge + values[r])
        box[1, r] = values[r] + min(sums[r], edge - values[r])


@compiled
@follows_records(
    "the merge ends when either list does",
    lambda by_point: 2 * len(by_point) + 2,
)
def _below(points: Integers, by_point: Integers, queries: Integers, by_query: Integers) -> Places:
    n = len(by_point)
    point_values, query_values = points[by_point], queries[by_query]
    reached = np.empty(n, np.int32)
    passed, query = 0, 0
    # Each iteration advances one of the two lists by arithmetic, because the processor would often
    # mispredict a branch on real data.
    while passed < n and query < n:
        reached[query] = passed
        step = int(point_values[passed] <= query_values[query])
        passed += step
        query += 1 - step
    reached[query:] = n
    below = np.empty(n, np.int32)
    below[by_query] = reached
    return below


@compiled
def _places(order: Integers) -> Places:
    places = np.empty(len(order), np.int32)
    for i in range(len(order)):
        places[order[i]] = i
    return places


@compiled
@follows_records(
    "positions in the tree of counts",
    lambda by_point: len(by_point) * ((len(by_point) >> 6).bit_length() + 3),
)
def _sweep(
    by_point: Integers, by_query: Integers, below: Places, places: Places, floors: Places
) -> Places:
    n = len(by_point)
    words = np.zeros((n >> 6) + 1, np.uint64)
    tree = np.zeros(len(words) + 1, np.int32)
    counts = np.empty(n, np.int32)
    one = np.uint64(1)
    entered = 0
    for i in range(n - 1, -1, -1):
        q = by_query[i]
        while entered < n - below[q]:
            place = places[by_point[n - 1 - entered]]
            words[place >> 6] |= one << np.uint64(place & 63)
            node = (place >> 6) + 1
            while node < len(tree):
                tree[node] += 1
                node += node & -node
            entered += 1
        floor = floors[q]
        rest = words[floor >> 6] & ((one << np.uint64(floor & 63)) - one)
        under = np.int64(set_bits(rest))
        node = floor >> 6
        while node > 0:
            under += tree[node]
            node &= node - 1
        counts[q] = entered - under
    return counts


@compiled
def _suffixes(order: Integers, stride: int) -> NDArray[np.uint64]:
    """Bitmaps of the points order[k · stride:], for k = 0, 1, …; the last bitmap is empty."""
    n = len(order)
    rows = (n + stride - 1) // stride + 1
    bitmaps = np.zeros((rows, (n >> 6) + 1), np.uint64)
    for k in range(rows - 2, -1, -1):
        bitmaps[k] = bitmaps[k + 1]
        for i in range(k * stride, min(n, (k + 1) * stride)):
            bitmaps[k, order[i] >> 6] |= np.uint64(1) << np.uint64(order[i] & 63)
    return bitmaps


@compiled
def _count_block(
    orders: Integers,
    below: Places,
    suffixes: NDArray[np.uint64],
    stride: int,
    first: int,
    last: int,
) -> Places:
    counts = np.empty(last - first, np.int32)
    above = np.empty(suffixes.shape[2], np.uint64)
    all_above = np.empty(suffixes.shape[2], np.uint64)
    for q in range(first, last):
        for axis in range(len(orders)):
            floor = below[axis, q]
            # All points of the stride are read, so that the work does not show the private position
            # inside it.
            k = min(floor // stride + 1, suffixes.shape[1] - 1)
            above[:] = suffixes[axis, k]
            for i in range((k - 1) * stride, min(k * stride, orders.shape[1])):
                point = orders[axis, i]
                above[point >> 6] |= np.uint64(i >= floor) << np.uint64(point & 63)
            if axis == 0:
                all_above[:] = above
            else:
                for word in range(len(above)):
                    all_above[word] &= above[word]
        dominating = np.int64(0)
        for word in range(len(all_above)):
            dominating += np.int64(set_bits(all_above[word]))
        counts[q - first] = dominating
    return counts
