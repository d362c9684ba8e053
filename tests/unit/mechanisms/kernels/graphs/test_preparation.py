"""The prepared columns: right on every graph, the same on any executor, refusable in advance."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings

from mechanisms.kernels.graphs import preparation
from mechanisms.kernels.graphs.preparation import (
    GRAPH_COLUMNS,
    check_degree_bound,
    preparation_work,
    prepare_graph,
)
from mechanisms.model.executor import Executor, Inline, Part, Result
from tests.unit.mechanisms.kernels.oracles import (
    NAMED,
    REFERENCE,
    betweenness_steps,
    co_degree,
    graphs,
    h_index,
    inner_edges,
    neighbours,
    rows_of,
)


class Threads(Executor):
    """As many threads as it says, finishing in whatever order they please."""

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def map(self, kernel: Callable[[Part], Result], parts: Iterable[Part]) -> list[Result]:
        with ThreadPoolExecutor(self.workers) as pool:
            return list(pool.map(kernel, parts))


def plain_columns(graph: nx.Graph) -> dict[str, list[int]]:
    rows = neighbours(graph)
    nodes = range(len(rows))
    return {
        "degree": [len(rows[v]) for v in nodes],
        "inner_edges": [inner_edges(rows, v) for v in nodes],
        "egocentric_betweenness": [betweenness_steps(rows, v) for v in nodes],
        "co_degree": [co_degree(rows, v) for v in nodes],
        "core_number": [nx.core_number(graph)[v] for v in nodes],
        "h_index": [h_index(rows, v) for v in nodes],
    }


@settings(deadline=None)
@given(graphs())
def test_random_graphs(graph: nx.Graph) -> None:
    columns = prepare_graph(*rows_of(graph), Inline())
    assert {name: column.tolist() for name, column in columns.items()} == plain_columns(graph)


@pytest.mark.parametrize("name", NAMED)
def test_named_graphs(name: str) -> None:
    columns = prepare_graph(*rows_of(NAMED[name]), Inline())
    assert tuple(columns) == GRAPH_COLUMNS
    assert [str(column.dtype) for column in columns.values()] == [
        "int32",
        "int64",
        "int64",
        "int32",
        "int32",
        "int32",
    ]
    assert {k: column.tolist() for k, column in columns.items()} == plain_columns(NAMED[name])


def test_the_reference_graph() -> None:
    columns = prepare_graph(*rows_of(REFERENCE), Inline())
    assert columns["degree"].tolist() == [5, 5, 2, 2, 2, 2, 2, 2]
    assert columns["co_degree"][[0, 2]].tolist() == [2, 1]
    assert (columns["egocentric_betweenness"][[0, 2]] / 2**26).tolist() == [6.5, 0]


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("name", ["power law", "caves", "isolated among others", "one node"])
def test_workers_do_not_change_a_bit(name: str, workers: int) -> None:
    rows = rows_of(NAMED[name])
    expected, actual = prepare_graph(*rows, Inline()), prepare_graph(*rows, Threads(workers))
    assert all(np.array_equal(expected[column], actual[column]) for column in GRAPH_COLUMNS)


@pytest.mark.parametrize("size", [1, 3, 17])
def test_odd_blocks_do_not_change_a_bit(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = rows_of(NAMED["power law"])
    expected = prepare_graph(*rows, Inline())

    def blocks(work: np.ndarray, count: int) -> list[tuple[int, int]]:
        del count
        return [(v, min(v + size, len(work))) for v in range(0, len(work), size)]

    monkeypatch.setattr(preparation, "equal_blocks", blocks)
    actual = prepare_graph(*rows, Inline())
    assert all(np.array_equal(expected[column], actual[column]) for column in GRAPH_COLUMNS)


def test_read_only_maps_are_prepared_like_arrays(tmp_path: Path) -> None:
    rows = rows_of(NAMED["caves"])
    for name, array in zip(("indptr", "indices"), rows, strict=True):
        np.save(tmp_path / f"{name}.npy", array)
    mapped = [np.load(tmp_path / f"{n}.npy", mmap_mode="r") for n in ("indptr", "indices")]
    expected, actual = prepare_graph(*rows, Inline()), prepare_graph(*mapped, Inline())
    assert all(np.array_equal(expected[column], actual[column]) for column in GRAPH_COLUMNS)


@pytest.mark.parametrize("name", ["power law", "one node", "star", "no edges"])
def test_progress_rises_to_one(name: str) -> None:
    shares: list[float] = []
    prepare_graph(*rows_of(NAMED[name]), Threads(2), shares.append)
    assert shares == sorted(shares)
    assert shares[0] > 0
    assert shares[-1] == 1


def test_what_progress_raises_stops_the_preparation() -> None:
    shares: list[float] = []

    def stop(share: float) -> None:
        shares.append(share)
        raise InterruptedError

    with pytest.raises(InterruptedError):
        prepare_graph(*rows_of(NAMED["power law"]), Inline(), stop)
    assert len(shares) == 1


def test_a_degree_bound_beyond_64_bits_is_refused() -> None:
    check_degree_bound(2**19 - 1)
    with pytest.raises(ValueError, match="524287"):
        check_degree_bound(2**19)


def test_a_degree_beyond_64_bits_is_never_prepared() -> None:
    leaves = 2**19
    indptr = np.concatenate(([0], np.arange(leaves, 2 * leaves + 1))).astype(np.int64)
    indices = np.concatenate((np.arange(1, leaves + 1), np.zeros(leaves))).astype(np.int32)
    with pytest.raises(ValueError, match="524287"):
        prepare_graph(indptr, indices, Inline())


def test_work_above_the_limit_is_known_before_it_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = rows_of(NAMED["half"])
    whole = preparation_work(*rows)
    assert preparation_work(*rows, limit=whole) == whole
    monkeypatch.setattr(preparation, "egocentric_work", lambda graph: pytest.fail(str(graph)))
    partial = preparation_work(*rows, limit=0)
    assert 0 < partial < whole


def test_work_grows_with_what_has_to_be_looked_at() -> None:
    def work(graph: nx.Graph) -> int:
        return preparation_work(*rows_of(graph))

    # The spines of a book graph are joined to each other and to all 400 pages. So one more spine
    # adds a star to the ego network of every other spine.
    books = [nx.complete_multipartite_graph(*[1] * spines, 400) for spines in (1, 2, 3)]
    works = [work(book) for book in books]
    assert works[2] - works[1] > works[1] - works[0] > 0
    assert work(nx.star_graph(50)) < work(nx.complete_bipartite_graph(25, 26))


def test_a_clique_has_no_open_pairs() -> None:
    columns = prepare_graph(*rows_of(nx.complete_graph(250)), Threads(2))
    assert set(columns["inner_edges"].tolist()) == {249 * 248 // 2}
    assert not columns["egocentric_betweenness"].any()
    assert set(columns["co_degree"].tolist()) == {248}


def test_a_bipartite_graph_has_only_open_pairs() -> None:
    columns = prepare_graph(*rows_of(nx.complete_bipartite_graph(150, 150)), Threads(2))
    assert not columns["inner_edges"].any()
    assert set(columns["egocentric_betweenness"].tolist()) == {(150 * 149 // 2) << 26}
    assert set(columns["co_degree"].tolist()) == {150}


def test_a_star_is_all_hub() -> None:
    columns = prepare_graph(*rows_of(nx.star_graph(30_000)), Threads(2))
    assert columns["egocentric_betweenness"][0] == (30_000 * 29_999 // 2) << 26
    assert not columns["egocentric_betweenness"][1:].any()
    assert columns["co_degree"].tolist() == [0] + [1] * 30_000


def test_one_node_beside_a_clique_opens_one_pair_a_member() -> None:
    columns = prepare_graph(*rows_of(nx.lollipop_graph(200, 1)), Threads(2))
    # Only the last node of the clique has an edge to the outer node. Any other node of the clique
    # shares with the outer node only this last node.
    expected = [0] * 199 + [199 << 26, 0]
    assert columns["egocentric_betweenness"].tolist() == expected
    assert columns["co_degree"].tolist() == [198] * 200 + [1]
