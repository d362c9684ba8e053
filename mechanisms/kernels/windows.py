"""Compressed rows of an edge list that may exceed memory, built one window of rows at a time.

The edge list and the rows are memory-mapped files. For every window of consecutive nodes the list
is read once from front to back, and only that window of the rows is written out of order. So memory
holds one window and a few numbers per node.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.compiled import compiled
from mechanisms.kernels.graph import Nodes, Offsets, first_duplicate, read_only

#: Edges read together in the search for a repeated edge.
PIECE = 1 << 20


def windowed_rows(
    sources: Nodes, targets: Nodes, indptr: Offsets, indices: Nodes, window: int
) -> bool:
    """Fill ``indices``, every row ascending, and return True if an edge is listed twice.

    Args:
        sources, targets: the ends of each edge, int32 (edges,), numbers of nodes, no self loops.
        indptr: int64 (nodes + 1,), the start of each row, by the degrees of this same list.
        indices: int32 (2 · edges,), the output.
        window: the number of neighbours in memory at a time; at least one row is.

    Raises: ValueError when the arrays are not of this form.
    """
    _check(sources, targets, indptr, indices)
    repeated = False
    for first, last in windows(indptr, window):
        rows = indices[indptr[first] : indptr[last]]
        _fill(read_only(sources), read_only(targets), first, last, indptr, rows)
        repeated = bool(_sort_rows(first, last, indptr, rows)) or repeated
    return repeated


def windows(indptr: Offsets, window: int) -> list[tuple[int, int]]:
    """Runs [first, last) of nodes with at most ``window`` neighbours together, or of a single
    node."""
    cuts = [0]
    nodes = len(indptr) - 1
    while cuts[-1] < nodes:
        end = int(np.searchsorted(indptr, indptr[cuts[-1]] + window, side="right")) - 1
        cuts.append(min(max(end, cuts[-1] + 1), nodes))
    return list(pairwise(cuts))


def first_repeated(sources: Nodes, targets: Nodes, indptr: Offsets, window: int) -> int | None:
    """The position of the first edge that repeats an earlier one, as ``first_duplicate`` defines
    it.

    The arrays are as in ``windowed_rows``.
    """
    positions = []
    for first, last in windows(indptr, window):
        places = np.concatenate(list(_lower_end_in(sources, targets, first, last)))
        position = first_duplicate(sources[places], targets[places], len(indptr) - 1)
        if position is not None:
            positions.append(int(places[position]))
    return min(positions, default=None)


def _lower_end_in(
    sources: Nodes, targets: Nodes, first: int, last: int
) -> Iterator[NDArray[np.intp]]:
    yield np.zeros(0, np.intp)
    for start in range(0, len(sources), PIECE):
        piece = slice(start, start + PIECE)
        lower = np.minimum(sources[piece], targets[piece])
        yield start + np.flatnonzero((lower >= first) & (lower < last))


def _check(sources: Nodes, targets: Nodes, indptr: Offsets, indices: Nodes) -> None:
    # Danger: compiled code checks no index.
    if not len(sources) == len(targets) < 2**31 or len(indices) != 2 * len(sources):
        raise ValueError(
            "an edge list is two arrays of one length, below 2³¹, and rows of twice it"
        )
    nodes, degrees = len(indptr) - 1, np.zeros(len(indptr) - 1, np.int64)
    for ends in (sources, targets):
        for start in range(0, len(ends), PIECE):
            piece = ends[start : start + PIECE]
            if not 0 <= int(piece.min()) <= int(piece.max()) < nodes:
                raise ValueError("the ends of edges are numbers from 0 to nodes - 1")
            _count(read_only(piece), degrees)
    if indptr[0] != 0 or not np.array_equal(np.diff(indptr), degrees):
        raise ValueError("rows begin where the degrees of the edge list say")


@compiled
def _count(ends: Nodes, degrees: Offsets) -> None:
    for end in ends:
        degrees[end] += 1


@compiled
def _fill(
    sources: Nodes, targets: Nodes, first: int, last: int, indptr: Offsets, rows: Nodes
) -> None:
    cursor = indptr[first:last] - indptr[first]
    for e in range(len(sources)):
        a, b = sources[e], targets[e]
        if first <= a < last:
            rows[cursor[a - first]] = b
            cursor[a - first] += 1
        if first <= b < last:
            rows[cursor[b - first]] = a
            cursor[b - first] += 1


@compiled
def _sort_rows(first: int, last: int, indptr: Offsets, rows: Nodes) -> bool:
    repeated = False
    for v in range(first, last):
        row = rows[indptr[v] - indptr[first] : indptr[v + 1] - indptr[first]]
        row.sort()
        for i in range(1, len(row)):
            repeated = repeated or row[i] == row[i - 1]
    return repeated
