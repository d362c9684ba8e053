"""Counts within nodes and the way of rows down a tree, against plain Python."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.kernels.partition import (
    BLOCK,
    COMBINATIONS,
    COUNTERS,
    INTERLEAVED,
    TILE,
    descend,
    joined,
    node_tables,
)
from mechanisms.model.executor import Executor, Inline


class Two(Inline):
    """Cuts the rows into two parts."""

    workers = 2


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(1, 400), max_size=12), st.integers(1, 2 * COUNTERS))
def test_each_attribute_is_counted_once_and_more_cells_never_save_counters(
    levels: list[int], cells: int
) -> None:
    groups = joined(levels, cells)
    assert sorted(one for group in groups for one in group) == list(range(len(levels)))
    for group in groups:
        size = prod(levels[one] for one in group)
        assert len(group) == 1 or size <= min(COMBINATIONS, COUNTERS // cells)
    # The public bound on the work counts the groups of attributes for the largest number of nodes.
    # So fewer nodes must never need more groups.
    counts = [len(joined(levels, fewer)) for fewer in range(1, cells + 1, max(1, cells // 50))]
    assert all(few <= many for few, many in pairwise([*counts, len(groups)]))


def test_attributes_of_few_levels_are_counted_together() -> None:
    assert joined([16, 2, 3, 300, 16, 5, 2], 2) == [[1, 6, 2, 5], [0, 4], [3]]
    assert len(joined([2, 2, 2], COUNTERS // 4)) == 2
    assert len(joined([2, 2, 2], COUNTERS)) == 3


@pytest.mark.parametrize("executor", [Inline(), Two()])
@pytest.mark.parametrize("rows", [TILE + 3, 2 * BLOCK + TILE + 2])
def test_blocks_and_tiles_meet_without_a_seam(rows: int, executor: Executor) -> None:
    generator = np.random.default_rng(rows)
    columns = [(generator.integers(0, k, rows).astype(np.uint16), k) for k in (3, 300, 2)]
    labels = generator.integers(0, 2, rows).astype(np.uint8)
    where = generator.integers(-1, 3, rows).astype(np.int32)
    inside = where >= 0
    tables = node_tables(columns, (labels, 2), where, 3, executor)
    for (codes, levels), table in zip(columns, tables, strict=True):
        expected = np.zeros((3, levels, 2), np.int64)
        np.add.at(expected, (where[inside], codes[inside], labels[inside]), 1)
        assert (table == expected).all()


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**32), st.integers(0, 300), st.integers(1, 5))
def test_every_node_has_the_table_of_its_rows(seed: int, rows: int, nodes: int) -> None:
    generator = np.random.default_rng(seed)
    columns = [(generator.integers(0, k, rows).astype(np.uint8), k) for k in (2, 5)]
    labels = generator.integers(0, 3, rows).astype(np.uint8)
    where = generator.integers(-1, nodes, rows).astype(np.int32)
    by_column = node_tables(columns, (labels, 3), where, nodes, Inline())
    for (codes, levels), tables in zip(columns, by_column, strict=True):
        assert tables.shape == (nodes, levels, 3)
        expected = Counter(zip(where.tolist(), codes.tolist(), labels.tolist(), strict=True))
        for node in range(nodes):
            for level in range(levels):
                for label in range(3):
                    assert tables[node, level, label] == expected[node, level, label]


@pytest.mark.parametrize("nodes", [1, INTERLEAVED // 8 + 1, COUNTERS])
def test_few_and_many_counters_count_the_same(nodes: int) -> None:
    codes = (np.arange(1000) % 4).astype(np.uint16)
    labels = (np.arange(1000) % 2).astype(np.uint8)
    where = (np.arange(1000) % nodes).astype(np.int32)
    (tables,) = node_tables([(codes, 4)], (labels, 2), where, nodes, Inline())
    assert tables.sum() == 1000
    assert (tables.sum(axis=(1, 2)) == np.bincount(where, minlength=nodes)).all()


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**32), st.integers(0, 300), st.integers(1, 5))
def test_rows_go_where_their_level_leads(seed: int, rows: int, nodes: int) -> None:
    generator = np.random.default_rng(seed)
    levels = [2, 5, 3]
    columns = [(generator.integers(0, k, rows).astype(np.uint8), k) for k in levels]
    where = generator.integers(-1, nodes, rows).astype(np.int32)
    split = generator.integers(0, 3, nodes).astype(np.int32)
    children = [levels[column] for column in split]
    first = np.cumsum([0, *children[:-1]], dtype=np.int32)
    numbers = generator.integers(-1, 9, sum(children)).astype(np.int32)
    below = descend(columns, where, split, first, numbers, Inline())
    for row in range(rows):
        node = where[row]
        expected = -1 if node < 0 else numbers[first[node] + columns[split[node]][0][row]]
        assert below[row] == expected
