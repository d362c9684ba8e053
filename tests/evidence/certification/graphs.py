"""Small labelled graphs in plain Python, and the columns of their nodes by definition.

A graph is one bit mask of neighbours per node. Everything here is slow and follows the
definitions literally: the compiled kernels and the integer utilities are compared with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import combinations

import numpy as np

from mechanisms.model.domains import Dataset, GraphDomain, NeighbouringRelation
from mechanisms.model.records import GraphRecords

Graph = tuple[int, ...]
Edge = tuple[int, int]


def graph_of(nodes: int, edges: Iterable[Edge]) -> Graph:
    masks = [0] * nodes
    for a, b in edges:
        masks[a] |= 1 << b
        masks[b] |= 1 << a
    return tuple(masks)


def edges_of(graph: Graph) -> list[Edge]:
    return [(a, b) for a, b in combinations(range(len(graph)), 2) if graph[a] >> b & 1]


def flipped(graph: Graph, a: int, b: int) -> Graph:
    """The neighbouring graph that differs only in the edge {a, b}."""
    masks = list(graph)
    masks[a] ^= 1 << b
    masks[b] ^= 1 << a
    return tuple(masks)


def all_graphs(nodes: int, max_degree: int) -> Iterator[Graph]:
    """Every labelled graph of the universe, those with fewer edges first."""
    pairs = list(combinations(range(nodes), 2))
    for count in range(len(pairs) + 1):
        for edges in combinations(pairs, count):
            graph = graph_of(nodes, edges)
            if highest_degree(graph) <= max_degree:
                yield graph


def highest_degree(graph: Graph) -> int:
    return max(mask.bit_count() for mask in graph)


def members(mask: int) -> list[int]:
    return [v for v in range(mask.bit_length()) if mask >> v & 1]


def degree(graph: Graph, v: int) -> Fraction:
    return Fraction(graph[v].bit_count())


def inner_edges(graph: Graph, v: int) -> int:
    return sum(graph[a] >> b & 1 for a, b in combinations(members(graph[v]), 2))


def egocentric_density(graph: Graph, v: int) -> Fraction:
    d = graph[v].bit_count()
    return Fraction(2 * inner_edges(graph, v), d * (d - 1)) if d >= 2 else Fraction(0)


def egocentric_betweenness(graph: Graph, v: int) -> Fraction:
    return sum((Fraction(1, 1 + c) for c in shared_by_open_pairs(graph, v)), Fraction(0))


def stored_betweenness(graph: Graph, v: int, bits: int = 26) -> int:
    """The same sum on the grid, each term rounded to the nearest step (halves up)."""
    return sum(((2 << bits) + 1 + c) // (2 * (1 + c)) for c in shared_by_open_pairs(graph, v))


def most_rounding(dataset: Dataset) -> Fraction:
    """Half a step for each pair of neighbours, of which there are at most D(D − 1)/2."""
    assert isinstance(dataset.domain, GraphDomain)
    bound = dataset.domain.max_degree
    return Fraction(bound * (bound - 1), 4)


def shared_by_open_pairs(graph: Graph, v: int) -> list[int]:
    """|N(a) ∩ N(b) ∩ N(v)| for the pairs a, b of neighbours of v without an edge."""
    return [
        (graph[a] & graph[b] & graph[v]).bit_count()
        for a, b in combinations(members(graph[v]), 2)
        if not graph[a] >> b & 1
    ]


def co_degree(graph: Graph, v: int) -> int:
    return max(((graph[v] & graph[w]).bit_count() for w in range(len(graph)) if w != v), default=0)


def core_number(graph: Graph, v: int) -> Fraction:
    """The largest k such that v stays when nodes of fewer than k neighbours go, again and again."""
    group, core = (1 << len(graph)) - 1, 0
    while group >> v & 1:
        loose = [w for w in members(group) if (graph[w] & group).bit_count() <= core]
        if not loose:
            core += 1
        for w in loose:
            group &= ~(1 << w)
    return Fraction(core)


def h_index(graph: Graph, v: int) -> Fraction:
    degrees = [graph[w].bit_count() for w in members(graph[v])]
    return Fraction(max(h for h in range(len(degrees) + 1) if sum(d >= h for d in degrees) >= h))


def records_of(graph: Graph) -> GraphRecords:
    nodes = range(len(graph))
    neighbours = [members(mask) for mask in graph]
    return GraphRecords(
        indptr=np.cumsum([0, *map(len, neighbours)], dtype=np.int64),
        indices=np.array([w for row in neighbours for w in row], dtype=np.int32),
        columns={
            "degree": np.array([graph[v].bit_count() for v in nodes], dtype=np.int32),
            "inner_edges": np.array([inner_edges(graph, v) for v in nodes], dtype=np.int64),
            "egocentric_betweenness": np.array(
                [stored_betweenness(graph, v) for v in nodes], dtype=np.int64
            ),
            "co_degree": np.array([co_degree(graph, v) for v in nodes], dtype=np.int32),
            "core_number": np.array([core_number(graph, v) for v in nodes], dtype=np.int32),
            "h_index": np.array([h_index(graph, v) for v in nodes], dtype=np.int32),
        },
    )


def dataset_of(nodes: int, max_degree: int) -> Dataset:
    return Dataset("graph", NeighbouringRelation.EDGE, GraphDomain(nodes, max_degree))
