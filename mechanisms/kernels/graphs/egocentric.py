"""Edges and two-paths inside the neighbourhood of every node, counted exactly.

For a node v with degree d, E edges among its neighbours and c(a, b) common neighbours of a and b
inside the neighbourhood, the egocentric betweenness EBC in steps of 2^−g is

    2^g · EBC(v) = (d(d − 1)/2 − E) · 2^g − Σ (2^g − τ(c(a, b))),   τ(c) = ⌊2^g / (1 + c) + ½⌋,

where the sum runs over the non-adjacent pairs with c ≥ 1. So the kernels visit two-paths, never all
d² pairs of a sparse neighbourhood. An ego is a node whose neighbourhood is counted. Integer sums do
not depend on their order or on the number of threads.
"""

import numpy as np

from mechanisms.kernels.bits import set_bits
from mechanisms.kernels.compiled import compiled
from mechanisms.kernels.graphs.graph import Nodes, Offsets
from mechanisms.kernels.graphs.ranks import RankedGraph, Ranks

#: The betweenness of each node is stored with a prepared graph as a whole number of steps of 2⁻²⁶.
#: A query that uses larger steps shifts this number right.
GRID_BITS = 26

#: Up to this degree, the egocentric betweenness of a node fits 64 bits in steps of 2⁻²⁶, because
#: for degree D it is below D²/2.
LARGEST_DEGREE = 2**19 - 1

#: The common neighbours of pairs of a node's neighbours are counted by a bit matrix or by visiting
#: all paths of two edges. The matrix has one row for each neighbour that has an edge to another
#: neighbour. It is considered for up to this many rows, which take 8 MiB per thread.
LARGEST_MATRIX = 8192


@compiled
def savings(largest_degree: int) -> Offsets:
    """The steps 2^g − τ(c) that c = 0 … largest_degree common neighbours take from a pair's share.

    The docstring of the module defines g and τ.
    """
    c = np.arange(largest_degree + 1, dtype=np.int64)
    tau = ((1 << (GRID_BITS + 1)) + 1 + c) // (2 * (1 + c))
    return (1 << GRID_BITS) - tau


@compiled
def _inner_edges(graph: RankedGraph, ego: int, place: Nodes, down: Ranks) -> tuple[Ranks, Offsets]:
    """The edges among the neighbours of ``ego``, as lists of lower neighbours.

    Neighbour i of the ego has ``down[starts[i]:starts[i + 1]]``, numbers below i, ascending.
    ``place`` is zero for all nodes before and after the call. ``down`` is a buffer that may be
    replaced by a larger one.
    """
    indptr, indices, split = graph.indptr, graph.indices, graph.split
    row = indices[indptr[ego] : indptr[ego + 1]]
    starts = np.zeros(len(row) + 1, np.int64)
    for i in range(len(row)):
        place[row[i]] = i + 1
    k = 0
    for i in range(len(row)):
        first, last = indptr[row[i]], split[row[i]]
        if k + last - first > len(down):
            room = np.empty(2 * (k + last - first), np.uint32)
            room[:k] = down[:k]
            down = room
        for e in range(first, last):
            j = place[indices[e]]
            down[k] = j - 1
            k += j != 0
        starts[i + 1] = k
    for i in range(len(row)):
        place[row[i]] = 0
    return down, starts


@compiled
def _inner_degrees(down: Ranks, starts: Offsets) -> Offsets:
    """The number of other neighbours of the ego that each neighbour is adjacent to."""
    degrees = starts[1:] - starts[:-1]
    for k in range(starts[-1]):
        degrees[down[k]] += 1
    return degrees


@compiled
def _costs(degrees: Offsets, edges: int) -> tuple[int, int]:
    """Approximate nanoseconds of counting inside one ego by two-paths, and by a bit matrix.

    Both are zero where there is nothing to count: without two-paths, or without open pairs.
    """
    paths, active = 0, 0
    for degree in degrees:
        paths += degree * (degree - 1) // 2
        active += degree > 0
    pairs, words = active * (active - 1) // 2, (active + 63) // 64
    if paths == 0 or pairs == edges:
        return 0, 0
    by_paths = 2 * paths + 6 * edges
    if active > LARGEST_MATRIX:
        return by_paths, by_paths + 1
    tests = pairs // 2 + (pairs - edges) * (8 + words) // 4
    return by_paths, tests + active * words + 6 * edges


@compiled
def _inner_rows(down: Ranks, starts: Offsets, degrees: Offsets) -> tuple[Offsets, Ranks]:
    """Compressed rows of the edges among an ego's neighbours, for the neighbours that have any."""
    renamed = np.empty(len(degrees), np.int64)
    indptr = np.zeros(len(degrees) + 1, np.int64)
    active = 0
    for i in range(len(degrees)):
        renamed[i] = active
        if degrees[i] > 0:
            indptr[active + 1] = indptr[active] + degrees[i]
            active += 1
    cursor = indptr[:active].copy()
    rows = np.empty(2 * starts[-1], np.uint32)
    for i in range(len(degrees)):
        for k in range(starts[i], starts[i + 1]):
            a, b = renamed[i], renamed[down[k]]
            rows[cursor[a]] = b
            rows[cursor[b]] = a
            cursor[a] += 1
            cursor[b] += 1
    return indptr[: active + 1], rows


@compiled
def _saved_by_paths(indptr: Offsets, rows: Ranks, gain: Offsets, count: Nodes) -> int:
    """The sum of 2^g − τ(c) over non-adjacent pairs b < a, by visiting every two-path a – x – b.

    ``count`` is zero before and after the call.
    """
    total = 0
    for a in range(len(indptr) - 1):
        # Each pair of nodes has a counter of the paths of two edges between them, and ``gain``
        # lists how much the next path adds to the sum. Pairs with an edge must add nothing. So
        # their counters start in the second half of ``gain``, which is all zeros.
        for e in range(indptr[a], indptr[a + 1]):
            count[rows[e]] = len(gain) // 2
        paths = 0
        for e in range(indptr[a], indptr[a + 1]):
            x = rows[e]
            for f in range(indptr[x], indptr[x + 1]):
                b = rows[f]
                if b >= a:
                    paths += f - indptr[x]
                    break
                total += gain[count[b]]
                count[b] += 1
        for e in range(indptr[a], indptr[a + 1]):
            count[rows[e]] = 0
        if 4 * paths > a:
            count[:a] = 0
            continue
        for e in range(indptr[a], indptr[a + 1]):
            x = rows[e]
            for f in range(indptr[x], indptr[x + 1]):
                if rows[f] >= a:
                    break
                count[rows[f]] = 0
    return total


@compiled
def _saved_by_matrix(indptr: Offsets, rows: Ranks, saving: Offsets) -> int:
    """The sum of ``_saved_by_paths``, by intersecting the bit rows of every non-adjacent pair."""
    active = len(indptr) - 1
    bits = np.zeros((active, (active + 63) // 64), np.uint64)
    for a in range(active):
        for e in range(indptr[a], indptr[a + 1]):
            bits[a, rows[e] >> 6] |= np.uint64(1) << np.uint64(rows[e] & 63)
    total = 0
    for a in range(active):
        for b in range(a):
            if (bits[a, b >> 6] >> np.uint64(b & 63)) & np.uint64(1) == 0:
                common = np.uint64(0)
                for w in range(bits.shape[1]):
                    common += set_bits(bits[a, w] & bits[b, w])
                total += saving[np.int64(common)]
    return total


@compiled
def egocentric_block(graph: RankedGraph, first: int, last: int) -> tuple[Offsets, Offsets]:
    """Two counts for each rank from ``first`` to ``last`` − 1, int64 each.

    These are the edges among its neighbours, and its egocentric betweenness in steps of 2⁻²⁶.
    """
    indptr = graph.indptr
    saving = savings(indptr[1])
    gain = np.zeros(2 * len(saving), np.int64)
    gain[: len(saving) - 1] = np.diff(saving)
    place = np.zeros(len(indptr) - 1, np.int32)
    count = np.zeros(indptr[first + 1] - indptr[first], np.int32)
    down = np.empty(1024, np.uint32)
    inner_edges = np.empty(last - first, np.int64)
    betweenness = np.empty(last - first, np.int64)
    for ego in range(first, last):
        degree = indptr[ego + 1] - indptr[ego]
        down, starts = _inner_edges(graph, ego, place, down)
        edges = starts[-1]
        open_pairs = degree * (degree - 1) // 2 - edges
        saved = 0
        if edges > 1 and open_pairs > 0:
            degrees = _inner_degrees(down, starts)
            by_paths, by_matrix = _costs(degrees, edges)
            if by_paths > 0:
                inner_indptr, rows = _inner_rows(down, starts, degrees)
                if by_paths <= by_matrix:
                    saved = _saved_by_paths(inner_indptr, rows, gain, count)
                else:
                    saved = _saved_by_matrix(inner_indptr, rows, saving)
        inner_edges[ego - first] = edges
        betweenness[ego - first] = (open_pairs << GRID_BITS) - saved
    return inner_edges, betweenness


@compiled
def egocentric_work(graph: RankedGraph) -> int:
    """Approximate nanoseconds to count inside all egos after listing the edges among neighbours."""
    place = np.zeros(len(graph.order), np.int32)
    down = np.empty(1024, np.uint32)
    total = 0
    for ego in range(len(graph.order)):
        down, starts = _inner_edges(graph, ego, place, down)
        total += min(_costs(_inner_degrees(down, starts), starts[-1]))
    return total
