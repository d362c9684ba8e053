"""From a coded edge list to compressed rows, by counting sorts that are linear in nodes and edges.

An edge list is two int32 arrays of node numbers. The rows do not depend on the order of the edges
or of the two ends of each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.compiled import compiled

Nodes = NDArray[np.int32]
Offsets = NDArray[np.int64]


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A plain read-only view, so that memory maps and arrays in memory share one compiled
    kernel."""
    view: NDArray[Any] = np.asarray(array).view()
    view.flags.writeable = False
    return view


def compressed_rows(sources: Nodes, targets: Nodes, nodes: int) -> tuple[Offsets, Nodes]:
    """The compressed rows of an undirected graph, every row ascending.

    Args:
        sources, targets: the ends of each edge, int32 (edges,), in [0, nodes), no self loops. A
            repeated edge appears twice in the rows: call ``first_duplicate`` first.
        nodes: the number of nodes, with or without edges.

    Returns: ``indptr`` int64 (nodes + 1,) and ``indices`` int32 (2 · edges,).
    Raises: ValueError when the arrays are not of this form.
    """
    _check(sources, targets, nodes)
    if np.any(sources == targets):
        raise ValueError("an edge joins two different nodes")
    return _compressed_rows(read_only(sources), read_only(targets), nodes)


def first_duplicate(sources: Nodes, targets: Nodes, nodes: int) -> int | None:
    """The position of the first edge that repeats an earlier one in either direction, or None.

    The arrays are as in ``compressed_rows``.
    """
    _check(sources, targets, nodes)
    position = _first_duplicate(read_only(sources), read_only(targets), nodes)
    return None if position < 0 else int(position)


def _check(sources: Nodes, targets: Nodes, nodes: int) -> None:
    # Danger: compiled code checks no index, so a node out of range would write out of bounds.
    if sources.ndim != 1 or sources.shape != targets.shape or len(sources) >= 2**31:
        raise ValueError("an edge list is two arrays of one length, below 2³¹")
    for ends in (sources, targets):
        if ends.dtype != np.int32 or not ends.flags.c_contiguous:
            raise ValueError("the ends of edges are contiguous int32")
        if len(ends) and not 0 <= int(ends.min()) <= int(ends.max()) < nodes:
            raise ValueError("the ends of edges are numbers from 0 to nodes - 1")


@compiled
def _compressed_rows(sources: Nodes, targets: Nodes, nodes: int) -> tuple[Offsets, Nodes]:
    edges = len(sources)
    indptr = np.zeros(nodes + 1, np.int64)
    ups = np.zeros(nodes + 1, np.int64)
    for e in range(edges):
        a, b = sources[e], targets[e]
        indptr[a + 1] += 1
        indptr[b + 1] += 1
        ups[min(a, b) + 1] += 1
    for v in range(nodes):
        indptr[v + 1] += indptr[v]
        ups[v + 1] += ups[v]
    # The larger ends, grouped by the smaller end, in any order.
    larger = np.empty(edges, np.int32)
    cursor = ups[:-1].copy()
    for e in range(edges):
        low = min(sources[e], targets[e])
        larger[cursor[low]] = max(sources[e], targets[e])
        cursor[low] += 1
    # Visiting the smaller ends in order sorts the smaller neighbours of every row. Visiting these
    # rows in order then sorts the larger neighbours after them.
    indices = np.empty(2 * edges, np.int32)
    cursor[:] = indptr[:-1]
    for low in range(nodes):
        for e in range(ups[low], ups[low + 1]):
            high = larger[e]
            indices[cursor[high]] = low
            cursor[high] += 1
    for high in range(nodes):
        for e in range(indptr[high], indptr[high + 1] - (ups[high + 1] - ups[high])):
            low = indices[e]
            indices[cursor[low]] = high
            cursor[low] += 1
    return indptr, indices


@compiled
def _first_duplicate(sources: Nodes, targets: Nodes, nodes: int) -> int:
    edges = len(sources)
    starts = np.zeros(nodes + 1, np.int64)
    for e in range(edges):
        starts[min(sources[e], targets[e]) + 1] += 1
    for v in range(nodes):
        starts[v + 1] += starts[v]
    # Positions grouped by the smaller end, ascending in each group.
    positions = np.empty(edges, np.int32)
    cursor = starts[:-1].copy()
    for e in range(edges):
        low = min(sources[e], targets[e])
        positions[cursor[low]] = e
        cursor[low] += 1
    first = edges
    seen_from = np.full(nodes, -1, np.int32)
    for low in range(nodes):
        for p in range(starts[low], starts[low + 1]):
            e = positions[p]
            if e >= first:
                break
            high = max(sources[e], targets[e])
            if seen_from[high] == low:
                first = e
                break
            seen_from[high] = low
    return first if first < edges else -1
