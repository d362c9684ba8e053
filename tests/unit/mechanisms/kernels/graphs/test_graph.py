"""Edge lists become sorted rows; what is not an edge list is refused before compiled code runs."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.kernels.graphs import graph as kernels
from mechanisms.kernels.graphs.graph import compressed_rows, first_repeated
from tests.unit.mechanisms.kernels.oracles import NAMED, edge_list, graphs

pairs = st.integers(2, 12).flatmap(
    lambda nodes: st.tuples(
        st.just(nodes),
        st.lists(
            st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)).filter(
                lambda edge: edge[0] != edge[1]
            ),
            max_size=40,
        ),
    )
)


def columns(edges: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    both = np.array(edges, dtype=np.int32).reshape(-1, 2)
    return np.ascontiguousarray(both[:, 0]), np.ascontiguousarray(both[:, 1])


def first_duplicate(sources: np.ndarray, targets: np.ndarray, nodes: int) -> int | None:
    return first_repeated(sources, targets, compressed_rows(sources, targets, nodes)[0], 8)


def plain_rows(edges: list[tuple[int, int]], nodes: int) -> list[list[int]]:
    rows: list[list[int]] = [[] for _ in range(nodes)]
    for a, b in edges:
        rows[a].append(b)
        rows[b].append(a)
    return [sorted(row) for row in rows]


def plain_first_duplicate(edges: list[tuple[int, int]]) -> int | None:
    seen = set()
    for position, edge in enumerate(edges):
        if frozenset(edge) in seen:
            return position
        seen.add(frozenset(edge))
    return None


@settings(deadline=None)
@given(pairs)
def test_rows_and_duplicates_are_those_of_the_plain_twins(
    case: tuple[int, list[tuple[int, int]]],
) -> None:
    nodes, edges = case
    indptr, indices = compressed_rows(*columns(edges), nodes)
    assert (indptr.dtype, indices.dtype) == (np.int64, np.int32)
    rows = [indices[indptr[v] : indptr[v + 1]].tolist() for v in range(nodes)]
    assert rows == plain_rows(edges, nodes)
    assert first_duplicate(*columns(edges), nodes) == plain_first_duplicate(edges)


@settings(deadline=None)
@given(graphs(), st.integers(0, 1000))
def test_the_order_and_the_direction_of_edges_do_not_matter(graph: nx.Graph, seed: int) -> None:
    one = compressed_rows(*edge_list(graph, seed), len(graph))
    other = compressed_rows(*edge_list(graph, seed + 1), len(graph))
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    assert first_duplicate(*edge_list(graph, seed), len(graph)) is None


@pytest.mark.parametrize("name", NAMED)
def test_rows_are_the_neighbours(name: str) -> None:
    graph = NAMED[name]
    indptr, indices = compressed_rows(*edge_list(graph), len(graph))
    assert len(indices) == 2 * graph.number_of_edges()
    for v in graph:
        assert indices[indptr[v] : indptr[v + 1]].tolist() == sorted(graph[v])


def test_the_later_copy_is_reported_and_the_earliest_of_several() -> None:
    assert first_duplicate(*columns([(2, 1), (0, 1), (1, 2), (1, 0)]), 3) == 2
    assert first_duplicate(*columns([(0, 1), (3, 4), (4, 3), (1, 0), (0, 1)]), 5) == 2
    assert first_duplicate(*columns([(3, 4), (0, 1), (1, 0), (4, 3)]), 5) == 2
    assert first_duplicate(*columns([(0, 1), (0, 2), (1, 2)]), 3) is None


good = np.array([0, 1], np.int32)


@pytest.mark.parametrize(
    "sources, targets",
    [
        (good, np.array([1], np.int32)),
        (good.reshape(1, 2), good.reshape(1, 2)),
        (good, np.array([1, 3], np.int32)),
        (np.array([-1, 1], np.int32), np.array([1, 2], np.int32)),
        (good.astype(np.int64), np.array([1, 2])),
        (good, np.array([1, 0, 2, 0], np.int32)[::2]),
    ],
    ids=["lengths", "dimensions", "too large", "negative", "wide", "strided"],
)
def test_what_is_not_an_edge_list_is_refused(sources: np.ndarray, targets: np.ndarray) -> None:
    with pytest.raises(ValueError):
        compressed_rows(sources, targets, 3)
    with pytest.raises(ValueError):
        first_repeated(sources, targets, np.zeros(4, np.int64), 8)


def test_a_self_loop_is_refused() -> None:
    with pytest.raises(ValueError, match="two different nodes"):
        compressed_rows(*columns([(0, 1), (2, 2)]), 3)


def test_memory_maps_run_the_same_compiled_code(tmp_path: Path) -> None:
    sources, targets = edge_list(NAMED["caves"])
    nodes = len(NAMED["caves"])
    expected = compressed_rows(sources, targets, nodes)
    signatures = list(kernels._fill.signatures)  # type: ignore[attr-defined]
    for name, array in (("sources", sources), ("targets", targets)):
        np.save(tmp_path / f"{name}.npy", array)
    mapped = [np.load(tmp_path / f"{n}.npy", mmap_mode="r") for n in ("sources", "targets")]
    rows = compressed_rows(mapped[0], mapped[1], nodes)
    assert all(np.array_equal(a, b) for a, b in zip(rows, expected, strict=True))
    assert list(kernels._fill.signatures) == signatures  # type: ignore[attr-defined]
