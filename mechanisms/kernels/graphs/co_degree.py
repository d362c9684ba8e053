"""Co-degrees: the largest number of neighbours that a node shares with another node.

For a node v with the set of neighbours N(v), κ(v) is the maximum of |N(v) ∩ N(w)| over all other
nodes w, adjacent to v or not. Each pair of nodes is counted once, from its node of higher rank, and
raises the maxima of both. The paths of two edges through the largest neighbour of a node, its hub,
are most paths of a graph with hubs, and are not visited: w shares the hub if it is marked as a
neighbour of the hub. Nodes of one hub follow each other, so that it is marked once for all.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.compiled import compiled
from mechanisms.kernels.graphs.graph import Nodes, Offsets
from mechanisms.kernels.graphs.ranks import RankedGraph, Ranks

#: Nodes with fewer neighbours share fewer than this many, so a byte counts them. Four times as many
#: counters of one byte fit into a cache.
SMALL = 256


def co_degree_floor(graph: RankedGraph) -> Nodes:
    """1 for every rank that shares a neighbour with some other rank, else 0; int32 (nodes,)."""
    degrees = np.diff(graph.indptr)
    floor = np.zeros(graph.nodes, np.int32)
    linked = degrees > 0
    # A node shares a neighbour with another node exactly if one of its neighbours has a second
    # neighbour. The list of neighbours of a node begins with the one of the largest degree, so
    # comparing that degree with 1 decides.
    floor[linked] = degrees[graph.indices[graph.indptr[:-1][linked]]] > 1
    return floor


def co_degree_order(graph: RankedGraph) -> Nodes:
    """The ranks of two or more neighbours in the order in which they are counted, int32.

    Those of ``SMALL`` neighbours or more come first. The others follow by their hubs.
    """
    degrees = np.diff(graph.indptr)
    large, linked = (int(np.count_nonzero(degrees >= least)) for least in (SMALL, 2))
    hubs = graph.indices[graph.indptr[large:linked]]
    order = np.arange(linked, dtype=np.int32)
    order[large:] = large + np.argsort(hubs, kind="stable")
    return order


@compiled
def co_degree_work(graph: RankedGraph) -> Offsets:
    """The number of two-paths from each rank to lower ranks but through its hub, int64 (nodes,)."""
    indptr, indices = graph.indptr, graph.indices
    nodes = len(indptr) - 1
    paths, has_hub = np.zeros(nodes, np.int64), np.zeros(nodes, np.bool_)
    for x in range(nodes):
        for e in range(indptr[x], indptr[x + 1]):
            v = indices[e]
            if has_hub[v]:
                paths[v] += e - indptr[x]
            has_hub[v] = True  # The hub is the neighbour of lowest rank, so it comes first.
    return paths


@compiled
def co_degree_block(graph: RankedGraph, order: Nodes, first: int, last: int) -> Nodes:
    """For each rank, the most neighbours that it shares in a block of pairs; int32 (nodes,).

    The block has the pairs of the ranks v at places ``first`` to ``last`` − 1 of ``order``, as
    ``co_degree_order`` returns it, and all w < v. A maximum of one may be returned as zero, because
    ``co_degree_floor`` has it.
    """
    indptr = graph.indptr
    nodes = len(indptr) - 1
    place = first
    while place < last and indptr[order[place] + 1] - indptr[order[place]] >= SMALL:
        place += 1
    most, marks = np.zeros(nodes, np.int32), np.zeros(nodes // 64 + 1, np.uint64)
    if place > first:
        _raise(graph, order[first:place], np.zeros(place, np.int32), marks, most)
    _raise(graph, order[place:last], np.zeros(nodes, np.uint8), marks, most)
    return most


@compiled
def _raise(
    graph: RankedGraph,
    ranks: Nodes,
    shared: NDArray[Any],
    marks: NDArray[np.uint64],
    most: Nodes,
) -> None:
    """Raise the maxima of all pairs of ``ranks`` and lower ranks.

    ``shared`` has a counter for every lower rank, and ``marks`` a bit. Both are zero before and
    after the call.
    """
    indptr, indices = graph.indptr, graph.indices
    hub = np.int64(-1)
    for v in ranks:
        first, last = indptr[v], indptr[v + 1]
        if indices[first] != hub:
            _mark(graph, hub, 0, marks)
            hub = np.int64(indices[first])
            _mark(graph, hub, 1, marks)
        paths = 0
        for e in range(first + 1, last):
            x = indices[e]
            paths += _count(indices[indptr[x] : indptr[x + 1]], v, shared)
        own = most[v]
        if 8 * paths > v:
            _count(indices[indptr[hub] : indptr[hub + 1]], v, shared)
            for w in range(v):
                count = np.int32(shared[w])
                most[w] = max(most[w], count)
                own = max(own, count)
            shared[:v] = 0
        else:
            for e in range(first + 1, last):
                x = indices[e]
                for f in range(indptr[x], indptr[x + 1]):
                    w = indices[f]
                    if w >= v:
                        break
                    # At a second path to w the counter is zero again. What follows then raises no
                    # maximum above one, and a branch that skipped it would take longer.
                    mark = (marks[w >> 6] >> np.uint64(w & 63)) & np.uint64(1)
                    count = np.int32(shared[w]) + np.int32(mark)
                    shared[w] = 0
                    most[w] = max(most[w], count)
                    own = max(own, count)
        most[v] = own
    _mark(graph, hub, 0, marks)


@compiled
def _count(row: Ranks, v: int, shared: NDArray[Any]) -> int:
    """Count the ranks below ``v`` at the beginning of a row; returns how many there are."""
    for place in range(len(row)):
        if row[place] >= v:
            return place
        shared[row[place]] += 1
    return len(row)


@compiled
def _mark(graph: RankedGraph, hub: np.int64, bit: int, marks: NDArray[np.uint64]) -> None:
    """Set the bits of all neighbours of a hub, or clear their words; −1 is no hub."""
    if hub >= 0:
        for e in range(graph.indptr[hub], graph.indptr[hub + 1]):
            w = graph.indices[e]
            if bit:
                marks[w >> 6] |= np.uint64(1) << np.uint64(w & 63)
            else:
                marks[w >> 6] = 0
