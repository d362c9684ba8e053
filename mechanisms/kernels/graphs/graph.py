"""From a coded edge list to compressed rows, built one window of rows at a time.

An edge list is two int32 arrays of node numbers. The rows do not depend on the order of the edges
or of the two ends of each.

Edge list and rows may be memory-mapped files that exceed memory. For every window of consecutive
nodes the list is read once from front to back, and only that window of the rows is written out of
order. So memory holds one window and a few numbers per node.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.compiled import compiled

Nodes = NDArray[np.int32]
Offsets = NDArray[np.int64]

#: The number of edges that are read at a time, which bounds the memory.
PIECE = 1 << 20


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A plain read-only view, so that memory maps and arrays in memory share one compiled
    kernel."""
    view: NDArray[Any] = np.asarray(array).view()
    view.flags.writeable = False
    return view


def compressed_rows(sources: Nodes, targets: Nodes, nodes: int) -> tuple[Offsets, Nodes]:
    """The compressed rows of an undirected graph in memory, every row ascending.

    Args:
        sources, targets: the ends of each edge, int32 (edges,), in [0, nodes), no self loops. A
            repeated edge appears twice in the rows.
        nodes: the number of nodes, with or without edges.

    Returns: ``indptr`` int64 (nodes + 1,) and ``indices`` int32 (2 · edges,).
    Raises: ValueError when the arrays are not of this form.
    """
    degrees = _degrees(sources, targets, nodes)
    if np.any(sources == targets):
        raise ValueError("an edge joins two different nodes")
    indptr = np.concatenate(([0], np.cumsum(degrees)))
    indices = np.empty(2 * len(sources), np.int32)
    windowed_rows(sources, targets, indptr, indices, len(indices))
    return indptr, indices


def windowed_rows(
    sources: Nodes, targets: Nodes, indptr: Offsets, indices: Nodes, window: int
) -> bool:
    """Fill ``indices``, every row ascending, and return True if an edge is listed twice.

    Args:
        sources, targets: as in ``compressed_rows``.
        indptr: int64 (nodes + 1,), the start of each row, by the degrees of this same list.
        indices: int32 (2 · edges,), the output.
        window: the most neighbours in memory at a time; a longer row is in memory alone.

    Raises: ValueError when the arrays are not of this form.
    """
    degrees = _degrees(sources, targets, len(indptr) - 1)
    if indptr[0] != 0 or not np.array_equal(np.diff(indptr), degrees):
        raise ValueError("rows begin where the degrees of the edge list say")
    if len(indices) != 2 * len(sources):
        raise ValueError("the rows have two entries for each edge")
    repeated = False
    for first, last in windows(indptr, window):
        rows = indices[indptr[first] : indptr[last]]
        _fill(read_only(sources), read_only(targets), first, last, indptr, rows)
        repeated = _sort_rows(first, last, indptr, rows) or repeated
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
    """The position of the first edge that repeats an earlier one in either direction, or None.

    The arrays are as in ``windowed_rows``. An edge of a window takes 32 bytes.
    """
    nodes = len(indptr) - 1
    _degrees(sources, targets, nodes)
    positions = []
    for first, last in windows(indptr, window):
        places = np.concatenate(list(_lower_end_in(sources, targets, first, last)))
        one, other = sources[places], targets[places]
        edges = np.minimum(one, other) * np.int64(nodes) + np.maximum(one, other)
        # A stable sort keeps equal edges in the order of the list, so each of them after the first
        # is a repeat.
        order = np.argsort(edges, kind="stable")
        repeats = order[1:][np.diff(edges[order]) == 0]
        if repeats.size:
            positions.append(int(places[repeats.min()]))
    return min(positions, default=None)


def _lower_end_in(
    sources: Nodes, targets: Nodes, first: int, last: int
) -> Iterator[NDArray[np.intp]]:
    yield np.zeros(0, np.intp)
    for start in range(0, len(sources), PIECE):
        piece = slice(start, start + PIECE)
        lower = np.minimum(sources[piece], targets[piece])
        yield start + np.flatnonzero((lower >= first) & (lower < last))


def _degrees(sources: Nodes, targets: Nodes, nodes: int) -> Offsets:
    """The degree of every node. Raises: ValueError when the arrays are no edge list.

    Danger: compiled code checks no index, so a node out of range would write out of bounds.
    """
    if sources.ndim != 1 or sources.shape != targets.shape or len(sources) >= 2**31:
        raise ValueError("an edge list is two arrays of one length, below 2³¹")
    degrees = np.zeros(nodes, np.int64)
    for ends in (sources, targets):
        if ends.dtype != np.int32 or not ends.flags.c_contiguous:
            raise ValueError("the ends of edges are contiguous int32")
        for start in range(0, len(ends), PIECE):
            piece = ends[start : start + PIECE]
            if not 0 <= int(piece.min()) <= int(piece.max()) < nodes:
                raise ValueError("the ends of edges are numbers from 0 to nodes - 1")
            _count(read_only(piece), degrees)
    return degrees


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
