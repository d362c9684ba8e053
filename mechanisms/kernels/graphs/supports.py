"""Edge supports: the number of triangles on every edge of a graph.

A triangle is counted once, from its node of highest rank: the kernel looks up its two lower
neighbours in each other's rows. Each part counts into its own array, and the arrays are added.
"""

from functools import reduce
from operator import iadd

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.compiled import compiled
from mechanisms.kernels.graphs.graph import Offsets
from mechanisms.kernels.graphs.memory import MOST
from mechanisms.kernels.graphs.ranks import RankedGraph, equal_blocks, ranked_graph, row_sums
from mechanisms.model.executor import Arrays, Executor, PartResult

#: The number of triangles on each edge. It is below the largest degree, so it fits 32 bits.
Supports = NDArray[np.int32]


def support_work(graph: RankedGraph) -> Offsets:
    """The number of steps of the search from each rank, int64 (nodes,)."""
    return 1 + row_sums(graph, graph.split, 2 + graph.lower)


def edge_supports(graph: RankedGraph, executor: Executor, most_parts: int = MOST) -> Supports:
    """The support of every edge, int32 (edges,), by its end of higher rank, then by the other end.

    Each of at most ``most_parts`` parts holds a full array until it is merged.
    """
    starts = np.concatenate(([0], np.cumsum(graph.lower)))
    work = support_work(graph)
    arrays = {**graph._asdict(), "starts": starts}

    def cut(workers: int) -> list[tuple[int, int]]:
        return equal_blocks(work, min(workers, most_parts))

    parts = executor.spread(_block, arrays, cut, work=int(work.sum()))
    return reduce(iadd, (part for (part,) in parts))


def _block(arrays: Arrays, block: tuple[int, int]) -> PartResult:
    return (_supports(ranked_graph(arrays), arrays["starts"], *block),)


@compiled
def _supports(graph: RankedGraph, starts: Offsets, first: int, last: int) -> Supports:
    indptr, indices, split = graph.indptr, graph.indices, graph.split
    supports = np.zeros(starts[-1], np.int32)
    # ``place`` marks the neighbours of the current node w that have a lower rank and were visited
    # already. For such a neighbour v, ``place[v]`` is 1 + the index of v in the row of w, else 0.
    place = np.zeros(last, np.int32)
    widest = 0
    for v in range(last):
        widest = max(widest, split[v] - indptr[v])
    hits = np.empty(widest + 1, np.int32)
    for w in range(first, last):
        low = split[w] - indptr[w]
        if low < 2:
            continue
        own = supports[starts[w] : starts[w] + low]
        place[indices[indptr[w]]] = 1
        for i in range(1, low):
            v = indices[indptr[w] + i]
            across = supports[starts[v] : starts[v + 1]]
            row = indices[indptr[v] : split[v]]
            matches = 0
            # Each look-up of a node adds 1 if it finds a triangle, else 0, without a branch. About
            # half of them find one, so the processor could not predict a branch. A misprediction
            # costs several steps.
            for k in range(len(row)):
                j = place[row[k]]
                hits[matches] = j
                hit = 1 if j != 0 else 0
                across[k] += hit
                matches += hit
            for k in range(matches):
                own[hits[k] - 1] += 1
            own[i] += matches
            place[v] = i + 1
        for i in range(low):
            place[indices[indptr[w] + i]] = 0
    return supports


@compiled
def by_row(graph: RankedGraph, supports: Supports) -> Supports:
    """The supports beside ``graph.indices``: every edge twice, once in the row of each end."""
    indptr, indices, split = graph.indptr, graph.indices, graph.split
    rows = np.empty(len(indices), np.int32)
    cursor = split.copy()
    edge = 0
    for w in range(len(split)):
        for e in range(indptr[w], split[w]):
            v = indices[e]
            rows[e] = supports[edge]
            rows[cursor[v]] = supports[edge]
            cursor[v] += 1
            edge += 1
    return rows
