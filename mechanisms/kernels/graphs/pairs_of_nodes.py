"""Extremes over all pairs of nodes, adjacent or not, that skip most of the pairs.

Nodes are ordered by a bound on the value of their pairs. The search ends when the best pair so far
reaches the bound of the next node. This early end changes the run time, never the result.
"""

import numpy as np

from mechanisms.kernels.compiled import compiled
from mechanisms.kernels.graphs.graph import Offsets
from mechanisms.kernels.graphs.ranks import RankedGraph
from mechanisms.kernels.graphs.supports import Supports


@compiled
def open_maximum(graph: RankedGraph, pruned: bool = True) -> int:
    """The most common neighbours of two nodes without an edge; 0 if there are no such nodes.

    A pair shares at most the smaller of its degrees, so falling degree ends the search.
    ``pruned=False`` visits every pair: the same number, for tests and benchmarks.
    """
    indptr, indices = graph.indptr, graph.indices
    nodes = len(indptr) - 1
    shared = np.zeros(nodes, np.int32)
    best = 0
    for v in range(nodes):
        degree = indptr[v + 1] - indptr[v]
        if pruned and degree <= best:
            break
        # The search is for the most common neighbours of two nodes without an edge between them. So
        # the counters of the neighbours of v start so low that they never become the maximum.
        for e in range(indptr[v], indptr[v + 1]):
            shared[indices[e]] = -(1 << 30)
        paths = 0
        for e in range(indptr[v], indptr[v + 1]):
            x = indices[e]
            for f in range(indptr[x], indptr[x + 1]):
                if indices[f] >= v:
                    break
                shared[indices[f]] += 1
                paths += 1
        if 4 * paths > v:
            for w in range(v):
                best = max(best, shared[w])
            shared[:v] = 0
        else:
            for e in range(indptr[v], indptr[v + 1]):
                x = indices[e]
                for f in range(indptr[x], indptr[x + 1]):
                    w = indices[f]
                    if w >= v:
                        break
                    best = max(best, shared[w])
                    shared[w] = 0
        for e in range(indptr[v], indptr[v + 1]):
            shared[indices[e]] = 0
    return best


@compiled
def degree_pairs(graph: RankedGraph) -> tuple[Offsets, Offsets]:
    """The Pareto pairs of degrees without the pair's own edge, as two int64 arrays.

    Nodes i and j have the pair (d_i − A_ij, d_j − A_ij), the larger part first: d is the degree,
    and A_ij is 1 if they are adjacent, else 0. No pair of nodes exceeds a listed pair in both
    parts. Pairs are ordered by falling first part; fewer than two nodes have none.
    """
    indptr, indices = graph.indptr, graph.indices
    nodes = len(indptr) - 1
    high, low = np.empty(2 * nodes, np.int64), np.empty(2 * nodes, np.int64)
    count = 0
    for v in range(1, nodes):
        degree = indptr[v + 1] - indptr[v]
        # The search is for Pareto pairs of degrees, which no other pair exceeds in both parts.
        # Among the nodes before v, two partners of v suffice: ``gap``, the first node without an
        # edge to v, and the first neighbour in the row of v. Nodes are in the order of falling
        # degree, so no other node of either kind has a larger degree.
        gap = 0
        e = indptr[v]
        while e < indptr[v + 1] and indices[e] == gap:
            gap += 1
            e += 1
        if gap < v:
            high[count], low[count] = indptr[gap + 1] - indptr[gap], degree
            count += 1
        if indptr[v] < indptr[v + 1] and indices[indptr[v]] < v:
            x = indices[indptr[v]]
            high[count], low[count] = indptr[x + 1] - indptr[x] - 1, degree - 1
            count += 1
        if gap == 0 or (gap < v and indptr[gap + 1] - indptr[gap] == indptr[1]):
            # Nodes are visited by falling degree. No pair of degrees with a later node has a larger
            # first or second part, so the search ends.
            break
    # Sorts the pairs of degrees by falling first part and, among equals, by falling second part.
    # Then a pair is on the Pareto front, where no other pair exceeds it in both parts, exactly if
    # its second part exceeds all earlier ones.
    order = np.argsort(-(high[:count] * (indptr[1] + 1) + low[:count]))
    front, largest = 0, -1
    for i in order:
        if low[i] > largest:
            largest = low[i]
            order[front] = i
            front += 1
    return high[order[:front]], low[order[:front]]


@compiled
def flip_maximum(graph: RankedGraph, supports: Supports, bound: Offsets, order: Offsets) -> int:
    """The local sensitivity of two-triangles: the most that one edge more or less changes the sum.

    The sum is Σ C(a, 2) over the edges, where a is the support of an edge. For a pair with a common
    neighbours the change is C(a, 2) plus, for each of them, the supports of its two sides without
    the pair's own edge.

    Args:
        supports: beside ``graph.indices``, as ``supports.by_row`` returns them.
        bound: for each rank, at least the value of any pair with it; int64 (nodes,).
        order: the ranks by falling bound.
    """
    indptr, indices = graph.indptr, graph.indices
    nodes = len(indptr) - 1
    shared, weight = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
    adjacent = np.zeros(nodes, np.int64)
    best = 0
    for v in order:
        if bound[v] <= best:
            break
        for e in range(indptr[v], indptr[v + 1]):
            adjacent[indices[e]] = 1
        for e in range(indptr[v], indptr[v + 1]):
            x = indices[e]
            for f in range(indptr[x], indptr[x + 1]):
                w = indices[f]
                shared[w] += 1
                weight[w] += supports[e] + supports[f]
        shared[v] = 0
        for e in range(indptr[v], indptr[v + 1]):
            x = indices[e]
            for f in range(indptr[x], indptr[x + 1]):
                w = indices[f]
                a = shared[w]
                if a:
                    change = a * (a - 1) // 2 + weight[w] - 2 * a * adjacent[w]
                    best = max(best, change)
                shared[w] = 0
                weight[w] = 0
        for e in range(indptr[v], indptr[v + 1]):
            adjacent[indices[e]] = 0
    return best
