"""The private totals of a graph, computed once per version for its statistics.

Danger: all are private and leave only through a mechanism whose loss was charged. Each is an int64
array, of length one except for the pairs.

| total | is |
|---|---|
| ``triangles`` | the number of triangles |
| ``two_triangles`` | Σ over edges of C(support, 2) |
| ``edge_maximum`` | the most common neighbours of two adjacent nodes |
| ``open_maximum`` | the most common neighbours of two nodes without an edge |
| ``harvest`` | the most triangles on one edge once the best single edge is added |
| ``flip_maximum`` | the most that one edge changes ``two_triangles`` |
| ``degree_pairs_high``, ``…_low`` | Pareto pairs of degrees (``pairs_of_nodes.degree_pairs``) |
"""

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.graphs.graph import PIECE, Nodes, windows
from mechanisms.kernels.graphs.memory import MOST
from mechanisms.kernels.graphs.pairs_of_nodes import degree_pairs, flip_maximum, open_maximum
from mechanisms.kernels.graphs.ranks import RankedGraph
from mechanisms.kernels.graphs.supports import Supports, by_row, edge_supports, support_work
from mechanisms.model.executor import Executor

GRAPH_TOTALS = (
    "triangles",
    "two_triangles",
    "edge_maximum",
    "open_maximum",
    "harvest",
    "flip_maximum",
    "degree_pairs_high",
    "degree_pairs_low",
)


def totals_work(graph: RankedGraph) -> int:
    """An upper bound on the steps of ``graph_totals``; the searches over pairs end far earlier."""
    # Each of the two searches over pairs of nodes visits every path of two edges at most once in
    # each direction. A node of degree d is the middle of at most d² of them. So the sum of all d²
    # bounds the steps of each search.
    reach = int(np.square(np.diff(graph.indptr)).sum())
    return int(support_work(graph).sum()) + 2 * reach


def graph_totals(
    graph: RankedGraph, co_degree: Nodes, executor: Executor, most_parts: int = MOST
) -> dict[str, NDArray[np.int64]]:
    """All ``GRAPH_TOTALS``; ``co_degree`` is κ of each rank, int32 (nodes,).

    Raises: OverflowError when the count of two-triangles leaves 64 bits.
    """
    supports = edge_supports(graph, executor, most_parts)
    most = int(supports.max(initial=0))
    triangles, pairs = int(supports.sum(dtype=np.int64)) // 3, _pairs(supports)
    rows = by_row(graph, supports)
    del supports  # Frees memory, because ``rows`` holds the same counts of triangles.
    high, low = degree_pairs(graph)
    totals = {
        "triangles": triangles,
        "two_triangles": pairs,
        "edge_maximum": most,
        "open_maximum": (closed := open_maximum(graph)),
        "harvest": max(closed, most + _grows(graph, rows, most)),
        "flip_maximum": _flip(graph, rows, co_degree, most),
    }
    arrays = {name: np.array([value], np.int64) for name, value in totals.items()}
    return {**arrays, "degree_pairs_high": high, "degree_pairs_low": low}


def _pairs(supports: Supports) -> int:
    """Σ C(a, 2) over all supports a, in whole numbers of any size."""
    counts = np.zeros(int(supports.max(initial=0)) + 1, np.int64)
    for start in range(0, len(supports), PIECE):
        # The supports, numbers of triangles on each edge, are counted in pieces, because
        # ``bincount`` copies its input to integers of 64 bits. A copy of all supports would take
        # twice their memory.
        counts += np.bincount(supports[start : start + PIECE], minlength=len(counts))
    return sum(a * (a - 1) // 2 * int(edges) for a, edges in enumerate(counts) if edges)


def _grows(graph: RankedGraph, rows: Supports, most: int) -> bool:
    """True if one more edge can raise the largest support.

    This holds if an edge of that support has a neighbour of one end that is no neighbour of the
    other.
    """
    places = np.flatnonzero(rows == most)
    if not places.size:
        return False
    degrees = np.diff(graph.indptr)
    ends = np.searchsorted(graph.indptr, places, side="right") - 1
    return bool((degrees[ends] + degrees[graph.indices[places]] > 2 * most + 2).any())


def _flip(graph: RankedGraph, rows: Supports, co_degree: Nodes, most: int) -> int:
    shared = co_degree.astype(np.int64)
    around, largest = np.zeros(graph.nodes, np.int64), np.zeros(graph.nodes, np.int64)
    for first, last in windows(graph.indptr, PIECE):
        # The supports (numbers of triangles) of the edges at each node are added in pieces, because
        # ``reduceat`` copies its input to integers of 64 bits. A copy of all supports would take
        # twice their memory.
        starts = graph.indptr[first : last + 1]
        linked = first + np.flatnonzero(np.diff(starts))
        if linked.size:
            part, offsets = rows[starts[0] : starts[-1]], graph.indptr[linked] - starts[0]
            around[linked] = np.add.reduceat(part, offsets, dtype=np.int64)
            largest[linked] = np.maximum.reduceat(part, offsets)
    # The search ends early by a bound for each node v: the most two-triangles (pairs of triangles
    # on one edge) that an edge at v adds or removes. If the ends of that edge have ``a`` common
    # neighbours, these are at most a·(a − 1)/2, plus one for each triangle on the 2a edges to these
    # neighbours.
    bound = shared * (shared - 1) // 2 + np.minimum(around, shared * largest) + shared * most
    order = np.argsort(-bound, kind="stable")
    return flip_maximum(graph, rows, bound, order)
