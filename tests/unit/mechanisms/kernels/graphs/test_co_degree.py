"""Co-degrees against their definition, in one block and in many."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.kernels.graphs.co_degree import co_degree_block, co_degree_floor, co_degree_work
from mechanisms.kernels.graphs.ranks import ranked
from tests.unit.mechanisms.kernels.oracles import NAMED, by_rank, co_degree, graphs, rows_of


def plain_block(rows: list[set[int]], first: int, last: int) -> list[int]:
    """Maxima over pairs from the block down, nodes of degree one left out."""
    most = [0] * last
    for v in range(first, last):
        for w in range(v):
            if len(rows[v]) > 1:
                shared = len(rows[v] & rows[w])
                most[v], most[w] = max(most[v], shared), max(most[w], shared)
    return most


def check(graph: nx.Graph, cuts: list[int]) -> None:
    _, rows = by_rank(graph)
    g = ranked(*rows_of(graph))
    work = [
        sum(w < v and len(rows[v]) > 1 for x in rows[v] for w in rows[x]) for v in range(len(rows))
    ]
    assert co_degree_work(g).tolist() == work
    most = co_degree_floor(g)
    assert most.tolist() == [int(co_degree(rows, v) > 0) for v in range(len(rows))]
    bounds = sorted({0, len(rows), *(cut % len(rows) for cut in cuts)})
    for first, last in itertools.pairwise(bounds):
        block = co_degree_block(g, first, last)
        assert block.tolist() == plain_block(rows, first, last)
        most[:last] = np.maximum(most[:last], block)
    assert most.tolist() == [co_degree(rows, v) for v in range(len(rows))]


@settings(deadline=None)
@given(graphs(), st.lists(st.integers(0, 100), max_size=4))
def test_random_graphs(graph: nx.Graph, cuts: list[int]) -> None:
    check(graph, cuts)


@pytest.mark.parametrize("name", NAMED)
def test_named_graphs(name: str) -> None:
    check(NAMED[name], [7, 31])


def test_a_hub_costs_no_pairs_of_its_leaves() -> None:
    star = ranked(*rows_of(nx.star_graph(30_000)))
    assert not co_degree_work(star).any()
    assert co_degree_floor(star).tolist() == [0] + [1] * 30_000
