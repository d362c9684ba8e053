"""The totals of a graph against their definitions, and the same on any number of workers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import comb

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings

from mechanisms.kernels.graphs.pairs_of_nodes import degree_pairs, open_maximum
from mechanisms.kernels.graphs.preparation import prepare_graph, prepare_totals
from mechanisms.kernels.graphs.ranks import ranked
from mechanisms.kernels.graphs.supports import by_row, edge_supports
from mechanisms.kernels.graphs.totals import GRAPH_TOTALS
from mechanisms.model.executor import Inline
from tests.unit.mechanisms.kernels.graphs.test_preparation import Threads
from tests.unit.mechanisms.kernels.oracles import NAMED, graphs, neighbours, rows_of


def fast(graph: nx.Graph, workers: int = 1) -> dict[str, list[int]]:
    rows = rows_of(graph)
    executor = Threads(workers) if workers > 1 else Inline()
    columns = prepare_graph(*rows, executor)
    totals = prepare_totals(*rows, columns["co_degree"], executor)
    assert tuple(totals) == GRAPH_TOTALS
    assert {total.dtype for total in totals.values()} == {np.dtype(np.int64)}
    return {name: total.tolist() for name, total in totals.items()}


def two_triangles(rows: list[set[int]]) -> int:
    return sum(comb(len(rows[a] & rows[b]), 2) for a, b in pairs_with_edge(rows))


def pairs_with_edge(rows: list[set[int]]) -> Iterator[tuple[int, int]]:
    return ((a, b) for a, b in combinations(range(len(rows)), 2) if b in rows[a])


def flipped(rows: list[set[int]], a: int, b: int) -> list[set[int]]:
    changed = [set(row) for row in rows]
    changed[a] ^= {b}
    changed[b] ^= {a}
    return changed


def largest_support(rows: list[set[int]]) -> int:
    return max((len(rows[a] & rows[b]) for a, b in pairs_with_edge(rows)), default=0)


def plain(graph: nx.Graph) -> dict[str, list[int]]:
    rows = neighbours(graph)
    pairs = list(combinations(range(len(rows)), 2))
    apart = [(a, b) for a, b in pairs if b not in rows[a]]
    now = two_triangles(rows)
    degrees = set()
    for a, b in pairs:
        both = [len(rows[a]) - (b in rows[a]), len(rows[b]) - (b in rows[a])]
        degrees.add((max(both), min(both)))
    pareto = [
        x for x in degrees if not any(y != x and y[0] >= x[0] and y[1] >= x[1] for y in degrees)
    ]
    pareto.sort(reverse=True)
    return {
        "triangles": [sum(nx.triangles(graph).values()) // 3],
        "two_triangles": [now],
        "edge_maximum": [largest_support(rows)],
        "open_maximum": [max((len(rows[a] & rows[b]) for a, b in apart), default=0)],
        "harvest": [
            max([largest_support(rows)] + [largest_support(flipped(rows, *p)) for p in apart])
        ],
        "flip_maximum": [
            max((abs(two_triangles(flipped(rows, *p)) - now) for p in pairs), default=0)
        ],
        "degree_pairs_high": [high for high, _ in pareto],
        "degree_pairs_low": [low for _, low in pareto],
    }


@settings(deadline=None, max_examples=150)
@given(graphs(9))
def test_random_graphs(graph: nx.Graph) -> None:
    assert fast(graph) == plain(graph)


@pytest.mark.parametrize("nodes", range(1, 5))
def test_every_graph_of_few_nodes(nodes: int) -> None:
    pairs = list(combinations(range(nodes), 2))
    for mask in range(1 << len(pairs)):
        graph = nx.empty_graph(nodes)
        graph.add_edges_from(pair for i, pair in enumerate(pairs) if mask >> i & 1)
        assert fast(graph) == plain(graph)


@pytest.mark.parametrize("name", NAMED)
def test_workers_do_not_change_a_total(name: str) -> None:
    assert fast(NAMED[name]) == fast(NAMED[name], workers=3)


@pytest.mark.parametrize("name", NAMED)
def test_supports_stand_beside_their_edges(name: str) -> None:
    graph = ranked(*rows_of(NAMED[name]))
    rows = by_row(graph, edge_supports(graph, Threads(2)))
    sets = [
        set(graph.indices[graph.indptr[v] : graph.indptr[v + 1]].tolist())
        for v in range(graph.nodes)
    ]
    expected = [len(sets[v] & sets[w]) for v in range(graph.nodes) for w in sorted(sets[v])]
    assert rows.tolist() == expected


@pytest.mark.parametrize("name", NAMED)
def test_pruning_does_not_change_the_maximum(name: str) -> None:
    graph = ranked(*rows_of(NAMED[name]))
    assert open_maximum(graph) == open_maximum(graph, pruned=False)


def test_a_hub_pairs_with_the_best_beside_it() -> None:
    # The hub and a leaf have the degrees 4 and 1, without their common edge 3 and 0. Two leaves
    # have the degrees 1 and 1, and no common edge.
    high, low = degree_pairs(ranked(*rows_of(nx.star_graph(4))))
    assert (high.tolist(), low.tolist()) == ([3, 1], [0, 1])
