"""The same graph with its nodes renamed by falling degree: the form that the kernels work on.

Rank 0 is a node of the largest degree; ties go by number. In every row the neighbours of lower rank
come first, and a node has at most √(2 · edges) of them. So each triangle is visited once, from its
node of highest rank down, and m^(3/2) steps bound the search for all triangles.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.compiled import compiled
from mechanisms.kernels.graphs.graph import Nodes, Offsets, read_only

#: Ranks number the nodes by falling degree. They are unsigned, because compiled code would test at
#: every step whether a signed index is negative.
Ranks = NDArray[np.uint32]


class RankedGraph(NamedTuple):
    """Compressed rows over ranks, ascending; private like the rows they come from.

    ``order`` int32 (nodes,) is the node of each rank. ``split`` int64 (nodes,): the neighbours of
    lower rank than v are ``indices[indptr[v]:split[v]]``. The largest degree is ``indptr[1]``.
    """

    order: Nodes
    indptr: Offsets
    indices: Ranks
    split: Offsets

    @property
    def nodes(self) -> int:
        return len(self.order)

    @property
    def lower(self) -> Offsets:
        """The number of neighbours of lower rank, int64 (nodes,)."""
        return self.split - self.indptr[:-1]


def ranked(indptr: Offsets, indices: Nodes) -> RankedGraph:
    """Rename the nodes of compressed rows by falling degree; there is at least one node."""
    return _ranked(read_only(indptr), read_only(indices))


def ranked_graph(arrays: Mapping[str, NDArray[Any]]) -> RankedGraph:
    """The graph among the arrays of a part, which may hold others too."""
    return RankedGraph(*(arrays[name] for name in RankedGraph._fields))


def equal_blocks(work: Offsets, count: int) -> list[tuple[int, int]]:
    """Cut ranks 0 … len(work) − 1 into at most ``count`` runs [first, last) of nearly equal work.

    No run exceeds an equal share by more than the work of its last rank, and none is empty.
    """
    cumulative = np.cumsum(work)
    total = int(cumulative[-1]) if len(work) else 0
    goals = [-(-total * part // count) for part in range(1, count)]
    cuts = np.searchsorted(cumulative, goals, side="left") + 1
    edges = np.unique(np.concatenate(([0], np.minimum(cuts, len(work)), [len(work)])))
    return [(int(a), int(b)) for a, b in pairwise(edges)]


@compiled
def _ranked(indptr: Offsets, indices: Nodes) -> RankedGraph:
    nodes = len(indptr) - 1
    largest = 0
    for v in range(nodes):
        largest = max(largest, indptr[v + 1] - indptr[v])
    # A counting sort of the nodes by falling degree gives their ranks. Nodes of equal degree stay
    # in the order of their numbers.
    places = np.zeros(largest + 2, np.int64)
    for v in range(nodes):
        places[largest - (indptr[v + 1] - indptr[v]) + 1] += 1
    for k in range(largest + 1):
        places[k + 1] += places[k]
    order = np.empty(nodes, np.int32)
    rank = np.empty(nodes, np.int32)
    for v in range(nodes):
        k = largest - (indptr[v + 1] - indptr[v])
        order[places[k]] = v
        rank[v] = places[k]
        places[k] += 1
    starts = np.zeros(nodes + 1, np.int64)
    for r in range(nodes):
        starts[r + 1] = starts[r] + indptr[order[r] + 1] - indptr[order[r]]
    # In the order of ranks, each node is appended to the lists of neighbours (rows) of all its
    # neighbours, so that the rows ascend. At that moment its own row holds exactly its neighbours
    # of lower rank, so ``split`` records where the row ends then.
    rows = np.empty(len(indices), np.uint32)
    cursor = starts[:-1].copy()
    split = np.empty(nodes, np.int64)
    for r in range(nodes):
        split[r] = cursor[r]
        for e in range(indptr[order[r]], indptr[order[r] + 1]):
            s = rank[indices[e]]
            rows[cursor[s]] = r
            cursor[s] += 1
    return RankedGraph(order, starts, rows, split)


def search_work(graph: RankedGraph) -> Offsets:
    """Approximate nanoseconds to list the edges inside each neighbourhood, int64 (nodes,)."""
    # The unit of this count of work is the scan of one row entry, about 4 nanoseconds. Starting a
    # node takes as long as 25 scans, and starting each of its neighbours as long as 4.
    return 4 * (25 + row_sums(graph, graph.indptr[1:], 4 + graph.lower))


@compiled
def row_sums(graph: RankedGraph, ends: Offsets, values: Offsets) -> Offsets:
    """The sum of ``values`` over each node's neighbours at positions before ``ends[v]``, int64."""
    indptr, indices = graph.indptr, graph.indices
    sums = np.zeros(len(ends), np.int64)
    for v in range(len(ends)):
        for e in range(indptr[v], ends[v]):
            sums[v] += values[indices[e]]
    return sums
