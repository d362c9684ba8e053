"""Co-degrees against their definition, in one block and in many."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.kernels.graphs.co_degree import (
    SMALL,
    co_degree_block,
    co_degree_floor,
    co_degree_order,
    co_degree_work,
)
from mechanisms.kernels.graphs.ranks import ranked
from tests.unit.mechanisms.kernels.oracles import NAMED, by_rank, co_degree, graphs, rows_of


def plain_block(rows: list[set[int]], block: list[int]) -> list[int]:
    """Maxima over pairs from the ranks of a block down."""
    most = [0] * len(rows)
    for v in block:
        for w in range(v):
            shared = len(rows[v] & rows[w])
            most[v], most[w] = max(most[v], shared), max(most[w], shared)
    return most


def check(graph: nx.Graph, cuts: list[int]) -> None:
    _, rows = by_rank(graph)
    g = ranked(*rows_of(graph))
    work = [sum(w < v for x in sorted(row)[1:] for w in rows[x]) for v, row in enumerate(rows)]
    assert co_degree_work(g).tolist() == work
    most = co_degree_floor(g)
    assert most.tolist() == [int(co_degree(rows, v) > 0) for v in range(len(rows))]
    order = co_degree_order(g)
    assert sorted(order) == [v for v, row in enumerate(rows) if len(row) > 1]
    bounds = sorted({0, len(order), *(cut % max(len(order), 1) for cut in cuts)})
    for first, last in itertools.pairwise(bounds):
        block = co_degree_block(g, order, first, last)
        plain = plain_block(rows, order[first:last].tolist())
        # A maximum of one may be missing in a block, because the floor has it.
        assert np.maximum(block, 1).tolist() == np.maximum(plain, 1).tolist()
        assert (block <= plain).all()
        most = np.maximum(most, block)
    assert most.tolist() == [co_degree(rows, v) for v in range(len(rows))]


@settings(deadline=None)
@given(graphs(), st.lists(st.integers(0, 100), max_size=4))
def test_random_graphs(graph: nx.Graph, cuts: list[int]) -> None:
    check(graph, cuts)


@pytest.mark.parametrize("name", NAMED)
def test_named_graphs(name: str) -> None:
    check(NAMED[name], [7, 31])


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("hubs", [1, 3])
def test_nodes_of_few_neighbours_around_hubs(share: float, hubs: int) -> None:
    """Hubs share more neighbours than a byte counts, and many nodes share a hub and others."""
    random = np.random.default_rng(5)
    nodes = 3 * SMALL
    graph = nx.gnm_random_graph(nodes, nodes, seed=6)
    for hub in range(nodes, nodes + hubs):
        few = random.permutation(nodes)[: SMALL + int(share * (nodes - SMALL))]
        graph.add_edges_from((hub, int(leaf)) for leaf in few)
    check(graph, [1, 2, 300])


def test_a_hub_costs_no_pairs_of_its_leaves() -> None:
    star = ranked(*rows_of(nx.star_graph(30_000)))
    assert not co_degree_work(star).any()
    assert co_degree_floor(star).tolist() == [0] + [1] * 30_000
