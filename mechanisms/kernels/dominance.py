"""Strict dominance, counted for all points: how many others are larger in every coordinate.

Coordinates become ranks first, so later steps compare positions in sorted lists and ties never
count. With two coordinates one sweep counts all points in O(n log n). Points enter by falling first
coordinate, and a Fenwick tree over a bitmap counts the entered points that are larger in the second
coordinate. With m ≥ 3 coordinates, bitmaps hold the points that are larger in each: n²·m bits in
all, processed in blocks of counted points.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.bits import set_bits
from mechanisms.kernels.compiled import compiled
from mechanisms.kernels.radix import ascending
from mechanisms.model.executor import Executor
from mechanisms.model.following import follows_records

Integers = NDArray[np.int64]
Places = NDArray[np.int32]

#: A point dominates another if it is larger in every coordinate. Counting the dominators of all n
#: points of m ≥ 3 coordinates reads n²·m bits, and a query that would read more than this is
#: refused. So many bits take one core about a second. Points that are known only up to ranges have
#: two counts, of possible and of certain dominators.
LARGEST_WORK = 2 * 10**10
#: In the sorted list of each coordinate, every 512th position stores a bitmap of all later points.
#: The bitmap for any other position is the next stored one with at most 512 points added.
_STRIDE = 512


def dominance_work(points: int, coordinates: int) -> int:
    """The work that ``LARGEST_WORK`` bounds; 0 where sorting suffices."""
    return points * points * coordinates if coordinates > 2 else 0


def reads_of_blocks(points: int, coordinates: int) -> int:
    """How many positions and words of bitmaps one count reads, of points of m ≥ 3 coordinates.

    For each point and coordinate these are one stride and one bitmap.
    """
    return points * coordinates * (min(points, _STRIDE) + points // 64 + 1)


def dominators(values: Integers, largest: Sequence[int], executor: Executor) -> Places:
    """For each point the number of others that are strictly larger in all coordinates, int32 (n,).

    ``values`` has shape (coordinates, n). ``largest`` < 2⁶³ bounds |value| in each, a public fact.
    """
    axes = [_Points(row, bound) for row, bound in zip(values, largest, strict=True)]
    return _counts(axes, executor)[0]


def interval_dominators(
    lower: Integers, upper: Integers, largest: Sequence[int], executor: Executor
) -> tuple[Places, Places]:
    """How many points *may* and how many *must* dominate each point, if only boxes are known.

    Each point lies strictly between its ``lower`` and ``upper`` end in every coordinate.

    Args:
        lower, upper: shape (coordinates, n), lower < upper everywhere.
        largest: as in ``dominators``, for both ends.

    Returns: two int32 arrays (n,). For each r, the number of others r' with upper(r') > lower(r) in
        all coordinates, and the number with lower(r') > upper(r) in all.
    """
    ends = [np.concatenate(pair) for pair in zip(upper, lower, strict=True)]
    axes = executor.map(lambda one: _Boxes(*one), zip(ends, largest, strict=True))
    possible, certain = _counts(axes, executor)
    # The range in which each point lies, its box, overlaps itself. So each point was counted as a
    # possible dominator of itself, and this one count is subtracted.
    return possible - np.int32(1), certain


class _Points:
    """One coordinate of points that are compared with each other."""

    def __init__(self, values: Integers, largest: int) -> None:
        self.values, self.order = values, ascending(values, largest)

    def in_order(self) -> list[tuple[Integers, Integers, Places]]:
        """The numbers of the points, and of the queries, by rising values; for each query in this
        order, how many points are at most as large. One such triple per side."""
        return [(self.order, self.order, _reached(self.values, self.order))]

    def by_number(self) -> list[tuple[Places, Places]]:
        """The position of each point among the points in order, and for each query, how many points
        are at most as large. One such pair per side."""
        return [_placed(self.values, self.order)]


class _Boxes(_Points):
    """One coordinate of boxes: upper ends, then as many lower ends.

    The first side has upper ends as points and lower ends as queries, the second the reverse.
    """

    def in_order(self) -> list[tuple[Integers, Integers, Places]]:
        n = len(self.order) // 2
        numbers, reached = _reached_apart(self.values, self.order)
        uppers, lowers = numbers[:n], numbers[n:]
        return [(uppers, lowers, reached[n:]), (lowers, uppers, reached[:n])]

    def by_number(self) -> list[tuple[Places, Places]]:
        n = len(self.order) // 2
        places, below = _placed_apart(self.values, self.order)
        return [(places[:n], below[n:]), (places[n:], below[:n])]


def _counts(axes: Sequence[_Points], executor: Executor) -> list[Places]:
    """For each side, the number of points above each query in all of its coordinates."""
    if len(axes) == 1:
        return [np.int32(below.size) - below for _, below in axes[0].by_number()]
    if len(axes) == 2:
        first, second = axes[0].in_order(), axes[1].by_number()
        sides = [(*one, *other) for one, other in zip(first, second, strict=True)]
        return executor.map(lambda side: _sweep(*side), sides)
    orders = zip(*(axis.in_order() for axis in axes), strict=True)
    below = zip(*(axis.by_number() for axis in axes), strict=True)
    return [
        _blocked(
            np.stack([one for one, *_ in order]), np.stack([one for _, one in under]), executor
        )
        for order, under in zip(orders, below, strict=True)
    ]


def _blocked(orders: Integers, below: Places, executor: Executor) -> Places:
    """The count for points in order and queries by number, both of shape (coordinates, n)."""
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
def _reached(values: Integers, order: Integers) -> Places:
    """For each value in ``order``, how many values are at most as large."""
    n = len(order)
    reached = np.empty(n, np.int32)
    end, last = n, values[order[n - 1]]
    for i in range(n - 1, -1, -1):
        value = values[order[i]]
        end = end if value == last else i + 1
        last = value
        reached[i] = end
    return reached


@compiled
def _placed(values: Integers, order: Integers) -> tuple[Places, Places]:
    """By number, the position of each value in ``order`` and how many are at most as large."""
    n = len(order)
    places, below = np.empty(n, np.int32), np.empty(n, np.int32)
    end, last = n, values[order[n - 1]]
    for i in range(n - 1, -1, -1):
        at = order[i]
        end = end if values[at] == last else i + 1
        last = values[at]
        places[at] = i
        below[at] = end
    return places, below


@compiled
def _reached_apart(ends: Integers, order: Integers) -> tuple[Integers, Places]:
    """The halves of ``ends`` apart, each in order: the numbers, and how many of the *other* half
    are at most as large. ``order`` is stable."""
    n = len(order) >> 1
    numbers, reached = np.empty(2 * n, np.int64), np.empty(2 * n, np.int32)
    # A box is the range in which a point lies, with an upper and a lower end. For each upper end,
    # this counts the lower ends that are at most as large, and for each lower end the upper ones.
    # ``seconds`` counts the lower ends up to position i of the sorted ends. Among equal ends the
    # upper ones come first. So an upper end reads ``equal``, which includes all lower ends equal to
    # it.
    seconds, equal = n, n
    last = ends[order[2 * n - 1]]
    for i in range(2 * n - 1, -1, -1):
        at = order[i]
        equal = equal if ends[at] == last else seconds
        last = ends[at]
        second = np.int64(at >= n)
        firsts = i + 1 - seconds
        slot = second * (n + seconds) + (1 - second) * firsts - 1
        numbers[slot] = at - second * n
        reached[slot] = second * firsts + (1 - second) * equal
        seconds -= int(second)
    return numbers, reached


@compiled
def _placed_apart(ends: Integers, order: Integers) -> tuple[Places, Places]:
    """By number, the position of each end in its own half of ``ends``, and how many of the *other*
    half are at most as large. ``order`` is stable."""
    n = len(order) >> 1
    places, below = np.empty(2 * n, np.int32), np.empty(2 * n, np.int32)
    # ``seconds`` counts the ends of the second half among the first i + 1 sorted ends. Among equal
    # ends those of the first half come first. So they read ``equal``, which also counts the ends of
    # the second half that equal them.
    seconds, equal = n, n
    last = ends[order[2 * n - 1]]
    for i in range(2 * n - 1, -1, -1):
        at = order[i]
        equal = equal if ends[at] == last else seconds
        last = ends[at]
        second = np.int64(at >= n)
        firsts = i + 1 - seconds
        places[at] = second * seconds + (1 - second) * firsts - 1
        below[at] = second * firsts + (1 - second) * equal
        seconds -= int(second)
    return places, below


@compiled
@follows_records(
    "positions in the tree of counts",
    lambda by_point: len(by_point) * ((len(by_point) >> 6).bit_length() + 3),
)
def _sweep(
    by_point: Integers, by_query: Integers, reached: Places, places: Places, floors: Places
) -> Places:
    n = len(by_point)
    words = np.zeros((n >> 6) + 1, np.uint64)
    tree = np.zeros(len(words) + 1, np.int32)
    counts = np.empty(n, np.int32)
    one = np.uint64(1)
    entered = 0
    for i in range(n - 1, -1, -1):
        q = by_query[i]
        while entered < n - reached[i]:
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
            # The loop reads all points between two stored bitmaps, although it adds only those from
            # position ``floor`` on. If it began at ``floor``, which is private, its run time would
            # show it.
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
