"""Ranks are nodes by falling degree, and cutting them loses none."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mechanisms.kernels.graphs.ranks import equal_blocks, ranked, search_work
from tests.unit.mechanisms.kernels.oracles import NAMED, by_rank, graphs, rows_of


def check(graph: nx.Graph) -> None:
    ranking = ranked(*rows_of(graph))
    order, rows = by_rank(graph)
    assert ranking.nodes == len(graph)
    assert ranking.indptr[1] == max(len(row) for row in rows)
    assert ranking.order.tolist() == order
    for r, row in enumerate(rows):
        start, split, end = ranking.indptr[r], ranking.split[r], ranking.indptr[r + 1]
        assert ranking.indices[start:end].tolist() == sorted(row)
        assert ranking.indices[start:split].tolist() == sorted(s for s in row if s < r)
    below = [sum(s < r for s in row) for r, row in enumerate(rows)]
    steps = [25 + sum(4 + below[s] for s in row) for row in rows]
    assert search_work(ranking).tolist() == [4 * step for step in steps]


@settings(deadline=None)
@given(graphs())
def test_ranks_are_those_of_the_plain_twin(graph: nx.Graph) -> None:
    check(graph)


@pytest.mark.parametrize("name", NAMED)
def test_ranks_of_named_graphs(name: str) -> None:
    check(NAMED[name])


@example([0, 1, 0], 2)
@given(st.lists(st.integers(0, 50), min_size=1, max_size=60), st.integers(1, 12))
def test_blocks_cover_all_ranks_in_order_and_share_the_work(work: list[int], count: int) -> None:
    blocks = equal_blocks(np.array(work, np.int64), count)
    assert len(blocks) <= count
    assert [v for first, last in blocks for v in range(first, last)] == list(range(len(work)))
    for first, last in blocks:
        assert first < last
        assert sum(work[first : last - 1]) <= sum(work) / count


def test_no_work_is_still_covered() -> None:
    assert equal_blocks(np.zeros(5, np.int64), 1) == [(0, 5)]
    covered = [
        v for first, last in equal_blocks(np.zeros(5, np.int64), 3) for v in range(first, last)
    ]
    assert covered == list(range(5))
