"""Edge supports: how many triangles stand on every edge of a graph.

A triangle is found once, from its node of highest rank: its two lower neighbours are looked up
among each other's. Each part counts into an array of its own, and the parts are added.
"""

from __future__ import annotations

from functools import reduce

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.compiled import compiled
from mechanisms.kernels.graph import Offsets
from mechanisms.kernels.memory import MOST
from mechanisms.kernels.ranked import RankedGraph, Ranks, equal_blocks
from mechanisms.model.executor import Arrays, Executor, Found

#: One count an edge; a support is below the largest degree.
Supports = NDArray[np.int32]


def support_work(graph: RankedGraph) -> Offsets:
    """How many steps the search from each rank takes, int64 (nodes,)."""
    return _search(graph.indptr, graph.indices, graph.split)


def edge_supports(graph: RankedGraph, executor: Executor, most_parts: int = MOST) -> Supports:
    """a_ij of every edge, int32 (edges,): edges by their end of higher rank, then by the other.

    Each of at most ``most_parts`` parts holds all of them while it is merged.
    """
    starts = np.concatenate(([0], np.cumsum(graph.split - graph.indptr[:-1])))
    work = support_work(graph)
    arrays = {**graph.arrays(), "starts": starts}

    def cut(workers: int) -> list[tuple[int, int]]:
        return equal_blocks(work, min(workers, most_parts))

    parts = executor.spread(_block, arrays, cut, work=int(work.sum()))
    return reduce(_added, (part for (part,) in parts))


def _block(arrays: Arrays, block: tuple[int, int]) -> Found:
    graph, (first, last) = arrays, block
    found = _supports(
        graph["indptr"], graph["indices"], graph["split"], graph["starts"], first, last
    )
    return (found,)


def by_row(graph: RankedGraph, supports: Supports) -> Supports:
    """The supports beside ``graph.indices``: every edge twice, once in the row of each end."""
    return _by_row(graph.indptr, graph.indices, graph.split, supports)


def _added(total: Supports, part: Supports) -> Supports:
    total += part
    return total


@compiled
def _search(indptr: Offsets, indices: Ranks, split: Offsets) -> Offsets:
    steps = np.empty(len(split), np.int64)
    for w in range(len(split)):
        steps[w] = 1
        for e in range(indptr[w], split[w]):
            steps[w] += 2 + split[indices[e]] - indptr[indices[e]]
    return steps


@compiled
def _supports(
    indptr: Offsets, indices: Ranks, split: Offsets, starts: Offsets, first: int, last: int
) -> Supports:
    supports = np.zeros(starts[-1], np.int32)
    # The number, from one, of a lower neighbour met so far of the node at hand; zero for others.
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
            found = 0
            # No branch on a look-up: as many hit as miss, and a wrong guess costs several steps.
            for k in range(len(row)):
                j = place[row[k]]
                hits[found] = j
                hit = 1 if j != 0 else 0
                across[k] += hit
                found += hit
            for k in range(found):
                own[hits[k] - 1] += 1
            own[i] += found
            place[v] = i + 1
        for i in range(low):
            place[indices[indptr[w] + i]] = 0
    return supports


@compiled
def _by_row(indptr: Offsets, indices: Ranks, split: Offsets, supports: Supports) -> Supports:
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
