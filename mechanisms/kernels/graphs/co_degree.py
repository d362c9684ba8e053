"""Co-degrees: the largest number of neighbours that a node shares with another node.

For a node v with the set of neighbours N(v), κ(v) is the maximum of |N(v) ∩ N(w)| over all other
nodes w, adjacent to v or not. The kernel counts every pair of nodes once, from its node of higher
rank, and raises the maxima of both.
"""

import numpy as np

from mechanisms.kernels.compiled import compiled
from mechanisms.kernels.graphs.graph import Nodes, Offsets
from mechanisms.kernels.graphs.ranks import RankedGraph


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


@compiled
def co_degree_work(graph: RankedGraph) -> Offsets:
    """The number of two-paths from each rank to lower ranks, int64 (nodes,)."""
    indptr, indices = graph.indptr, graph.indices
    paths = np.zeros(len(indptr) - 1, np.int64)
    for x in range(len(indptr) - 1):
        for e in range(indptr[x], indptr[x + 1]):
            v = indices[e]
            if indptr[v + 1] - indptr[v] > 1:
                paths[v] += e - indptr[x]
    return paths


@compiled
def co_degree_block(graph: RankedGraph, first: int, last: int) -> Nodes:
    """For each rank below ``last``, the most neighbours that it shares in a block of pairs; int32.

    The block has the pairs of ranks v and w with first ≤ v < last and w < v, both of degree two or
    more. ``co_degree_floor`` covers the other pairs: they share at most one neighbour, and a hub
    has very many of them.
    """
    indptr, indices = graph.indptr, graph.indices
    shared = np.zeros(last, np.int32)
    most = np.zeros(last, np.int32)
    for v in range(first, last):
        if indptr[v + 1] - indptr[v] < 2:
            break
        paths = 0
        for e in range(indptr[v], indptr[v + 1]):
            x = indices[e]
            for f in range(indptr[x], indptr[x + 1]):
                if indices[f] >= v:
                    paths += f - indptr[x]
                    break
                shared[indices[f]] += 1
        own = np.int32(0)
        if 8 * paths > v:
            for w in range(v):
                most[w] = max(most[w], shared[w])
                own = max(own, shared[w])
            shared[:v] = 0
        else:
            for e in range(indptr[v], indptr[v + 1]):
                x = indices[e]
                for f in range(indptr[x], indptr[x + 1]):
                    w = indices[f]
                    if w >= v:
                        break
                    most[w] = max(most[w], shared[w])
                    own = max(own, shared[w])
                    shared[w] = 0
        most[v] = max(most[v], own)
    return most
