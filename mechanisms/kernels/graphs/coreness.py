"""Core numbers, and h-indices of the degrees of neighbours: both in steps as many as edges."""

import numpy as np

from mechanisms.kernels.compiled import compiled
from mechanisms.kernels.graphs.graph import Nodes, Offsets, read_only


def core_numbers(indptr: Offsets, indices: Nodes) -> Nodes:
    """For each node the largest k of a subgraph that holds it with all degrees at least k.

    ``indptr`` and ``indices``: compressed rows as ``graph.compressed_rows`` returns them.
    Returns: int32 (nodes,). Source: Batagelj and Zaveršnik 2003.
    """
    return _core_numbers(read_only(indptr), read_only(indices))


def h_indices(indptr: Offsets, indices: Nodes) -> Nodes:
    """For each node the largest h of which h neighbours have a degree of at least h.

    The arguments are those of ``core_numbers``. Returns: int32 (nodes,).
    """
    return _h_indices(read_only(indptr), read_only(indices))


@compiled
def _core_numbers(indptr: Offsets, indices: Nodes) -> Nodes:
    nodes = len(indptr) - 1
    core = np.empty(nodes, np.int32)
    largest = 0
    for v in range(nodes):
        core[v] = indptr[v + 1] - indptr[v]
        largest = max(largest, core[v])
    # Nodes are removed one by one, each time one with the fewest remaining neighbours. ``order``
    # sorts the nodes by their number of remaining neighbours. ``starts[d]`` is the position in
    # ``order`` of the first remaining node with d such neighbours.
    starts = np.zeros(largest + 2, np.int64)
    for v in range(nodes):
        starts[core[v] + 1] += 1
    for d in range(largest + 1):
        starts[d + 1] += starts[d]
    order = np.empty(nodes, np.int32)
    place = np.empty(nodes, np.int32)
    for v in range(nodes):
        place[v] = starts[core[v]]
        order[place[v]] = v
        starts[core[v]] += 1
    for d in range(largest, -1, -1):
        starts[d + 1] = starts[d]
    starts[0] = 0
    for i in range(nodes):
        v = order[i]
        for e in range(indptr[v], indptr[v + 1]):
            w = indices[e]
            if core[w] <= core[v]:
                continue
            # The removal of node v takes one neighbour from node w. So w changes places with the
            # first node of its degree, and the nodes of that degree then begin one place later in
            # ``order``.
            first = starts[core[w]]
            other = order[first]
            order[place[w]], place[other] = other, place[w]
            order[first], place[w] = w, first
            starts[core[w]] = first + 1
            core[w] -= 1
    return core


@compiled
def _h_indices(indptr: Offsets, indices: Nodes) -> Nodes:
    nodes = len(indptr) - 1
    largest = 0
    for v in range(nodes):
        largest = max(largest, indptr[v + 1] - indptr[v])
    result = np.zeros(nodes, np.int32)
    # ``counts[d]`` is the number of neighbours of node v that have degree d. Degrees above that of
    # v count as that of v, because the h-index of v is at most its own degree.
    counts = np.zeros(largest + 1, np.int32)
    for v in range(nodes):
        degree = indptr[v + 1] - indptr[v]
        for e in range(indptr[v], indptr[v + 1]):
            w = indices[e]
            counts[min(degree, indptr[w + 1] - indptr[w])] += 1
        above = 0
        for h in range(degree, 0, -1):
            above += counts[h]
            if above >= h:
                result[v] = h
                break
        counts[: degree + 1] = 0
    return result
