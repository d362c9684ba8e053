"""Counting inside egos: every kernel against its twin, betweenness against its definition."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings

from mechanisms.kernels.graphs import egocentric as kernels
from mechanisms.kernels.graphs.egocentric import (
    GRID_BITS,
    LARGEST_DEGREE,
    LARGEST_MATRIX,
    egocentric_block,
    egocentric_work,
    savings,
)
from mechanisms.kernels.graphs.ranks import ranked
from tests.unit.mechanisms.kernels.oracles import (
    NAMED,
    REFERENCE,
    REFERENCE_NODES,
    betweenness_steps,
    by_rank,
    graphs,
    inner_edges,
    numbered,
    rounded,
    rows_of,
)


def plain_down(rows: list[set[int]], ego: int) -> list[list[int]]:
    """For each neighbour of the ego its adjacent lower ones, by their places in its row."""
    row = sorted(rows[ego])
    return [[j for j in range(i) if row[j] in rows[row[i]]] for i in range(len(row))]


def plain_saved(rows: list[list[int]]) -> int:
    """Σ 2^g − τ(c) over the non-adjacent pairs of a graph."""
    sets = [set(row) for row in rows]
    return sum(
        (1 << GRID_BITS) - rounded(len(sets[a] & sets[b]))
        for a, b in combinations(range(len(sets)), 2)
        if b not in sets[a]
    )


def plain_costs(degrees: list[int], edges: int) -> tuple[int, int]:
    paths = sum(d * (d - 1) // 2 for d in degrees)
    active = sum(d > 0 for d in degrees)
    pairs, words = active * (active - 1) // 2, -(-active // 64)
    if not paths or pairs == edges:
        return 0, 0
    by_paths = 2 * paths + 6 * edges
    if active > LARGEST_MATRIX:
        return by_paths, by_paths + 1
    tests = pairs // 2 + (pairs - edges) * (8 + words) // 4
    return by_paths, tests + active * words + 6 * edges


def tables(size: int) -> tuple[np.ndarray, np.ndarray]:
    saving = savings(size)
    gain = np.zeros(2 * len(saving), np.int64)
    gain[:size] = np.diff(saving)
    return saving, gain


def check_one_ego(graph: nx.Graph, rows: list[set[int]], ego: int) -> int:
    """Compare every kernel of one ego with its twin; return the cost of the chosen one."""
    g = ranked(*rows_of(graph))
    place = np.zeros(g.nodes, np.int32)
    # The list of edges has a capacity of one at first, so that the test makes it grow.
    room = np.empty(1, np.uint32)
    down, starts = kernels._inner_edges(g, ego, place, room)
    assert not place.any()
    expected = plain_down(rows, ego)
    assert [down[a:b].tolist() for a, b in pairwise(starts)] == expected

    full = [set(row) for row in expected]
    for i, row in enumerate(expected):
        for j in row:
            full[j].add(i)
    degrees = kernels._inner_degrees(down, starts)
    assert degrees.tolist() == [len(row) for row in full]
    costs = kernels._costs(degrees, int(starts[-1]))
    assert costs == plain_costs([len(row) for row in full], sum(map(len, expected)))

    active = [i for i, row in enumerate(full) if row]
    inner_rows = [sorted(active.index(j) for j in full[i]) for i in active]
    indptr, inner = kernels._inner_rows(down, starts, degrees)
    assert [inner[a:b].tolist() for a, b in pairwise(indptr)] == inner_rows

    saving, gain = tables(int(g.indptr[1]))
    count = np.zeros(int(g.indptr[1]), np.int32)
    saved = plain_saved(inner_rows)
    assert kernels._saved_by_paths(indptr, inner, gain, count) == saved
    assert not count.any()
    assert kernels._saved_by_matrix(indptr, inner, saving) == saved
    return min(costs)


def check(graph: nx.Graph) -> None:
    _, rows = by_rank(graph)
    g = ranked(*rows_of(graph))
    inner, betweenness = egocentric_block(g, 0, g.nodes)
    assert inner.tolist() == [inner_edges(rows, v) for v in range(len(rows))]
    assert betweenness.tolist() == [betweenness_steps(rows, v) for v in range(len(rows))]
    work = sum(check_one_ego(graph, rows, ego) for ego in range(len(rows)))
    assert egocentric_work(g) == work


@settings(deadline=None, max_examples=40)
@given(graphs(largest=24))
def test_random_graphs(graph: nx.Graph) -> None:
    check(graph)


@pytest.mark.parametrize("name", ["half", "three parts", "caves", "wheel", "book", "clique"])
def test_named_graphs_whose_egos_span_several_words(name: str) -> None:
    graph = NAMED[name]
    _, rows = by_rank(graph)
    for ego in range(0, len(rows), 1 + len(rows) // 8):
        check_one_ego(graph, rows, ego)


@pytest.mark.parametrize("name", [name for name in NAMED if name not in {"half", "dense"}])
def test_named_graphs_equal_betweenness_in_the_ego_network(name: str) -> None:
    graph = NAMED[name]
    g = ranked(*rows_of(graph))
    _, steps = egocentric_block(g, 0, g.nodes)
    # All nodes of a small graph are compared, and about a dozen nodes of a large one.
    for rank in range(0, g.nodes, 1 + g.nodes // 12):
        v = int(g.order[rank])
        ego = nx.ego_graph(graph, v)
        # The reference counts all shortest paths. In an ego network these have at most two edges,
        # and the kernel counts just those.
        expected = nx.betweenness_centrality(ego, normalized=False)[v]
        assert steps[rank] / 2**GRID_BITS == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_the_reference_graph() -> None:
    g = ranked(*rows_of(REFERENCE))
    _, steps = egocentric_block(g, 0, g.nodes)
    utilities = {REFERENCE_NODES[v]: int(s) for v, s in zip(g.order, steps, strict=True)}
    assert utilities["a"] == 13 * 2**GRID_BITS // 2
    assert utilities["v0"] == 0
    # Exchanging a with b, and v0 and v1 with v4 and v5, does not change the reference graph.
    assert utilities["b"] == utilities["a"]


def test_a_path_and_a_star_by_hand() -> None:
    path = ranked(*rows_of(nx.path_graph(5)))
    _, steps = egocentric_block(path, 0, 5)
    assert steps.tolist() == [2**GRID_BITS] * 3 + [0, 0]
    star = ranked(*rows_of(nx.star_graph(20_000)))
    inner, steps = egocentric_block(star, 0, 2)
    assert steps.tolist() == [(20_000 * 19_999 // 2) << GRID_BITS, 0]
    assert not inner.any()


def test_a_hub_over_a_long_cycle_is_counted_without_a_matrix() -> None:
    rim = LARGEST_MATRIX + 8
    wheel = ranked(*rows_of(nx.wheel_graph(rim + 1)))
    inner, steps = egocentric_block(wheel, 0, 1)
    assert inner.tolist() == [rim]
    # Rim nodes at distance two on the cycle share one neighbour beside the hub. All other pairs
    # without an edge share only the hub.
    two_apart, farther = rim, rim * (rim - 1) // 2 - 2 * rim
    assert steps.tolist() == [(two_apart << (GRID_BITS - 1)) + (farther << GRID_BITS)]


def test_a_neighbourhood_too_wide_for_a_matrix_is_never_given_one() -> None:
    for active in (LARGEST_MATRIX, LARGEST_MATRIX + 1):
        degrees = [active - 2] * active
        edges = active * (active - 2) // 2
        by_paths, by_matrix = kernels._costs(np.array(degrees, np.int64), edges)
        assert (by_paths, by_matrix) == plain_costs(degrees, edges)
        assert (by_paths <= by_matrix) == (active > LARGEST_MATRIX)


def test_savings_are_those_of_the_rounded_reciprocals() -> None:
    values = savings(3000).tolist()
    exact = [Fraction(2**GRID_BITS, 1 + c) for c in range(3001)]
    tau = [2**GRID_BITS - s for s in values]
    assert all(abs(t - e) <= Fraction(1, 2) for t, e in zip(tau, exact, strict=True))
    assert values[:2] == [0, 2 ** (GRID_BITS - 1)]
    # The proof of admissibility (selection.md, section 3) needs that one more common neighbour
    # lowers the value of a pair by at most one half and never raises it.
    steps = [a - b for a, b in pairwise(tau)]
    assert all(0 <= step <= 2 ** (GRID_BITS - 1) for step in steps)


def test_the_largest_degree_is_the_last_that_fits() -> None:
    assert LARGEST_DEGREE**2 * 2**GRID_BITS // 2 < 2**63 <= (LARGEST_DEGREE + 1) ** 2 * 2**25


def test_the_dense_half_and_the_sparse_rest_of_one_graph_agree_with_their_definition() -> None:
    graph = numbered(nx.disjoint_union(NAMED["dense"], NAMED["sparse"]))
    _, rows = by_rank(graph)
    g = ranked(*rows_of(graph))
    _, betweenness = egocentric_block(g, 0, g.nodes)
    assert betweenness.tolist() == [betweenness_steps(rows, v) for v in range(len(rows))]
