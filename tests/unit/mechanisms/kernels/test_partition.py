"""Counts within nodes and the way of rows down a tree, against plain Python."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.kernels.cells import INTERLEAVED
from mechanisms.kernels.partition import descend, node_tables
from mechanisms.model.executor import Inline


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


@pytest.mark.parametrize("nodes", [1, INTERLEAVED // 8 + 1])
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
    columns = [generator.integers(0, k, rows).astype(np.uint8) for k in levels]
    where = generator.integers(-1, nodes, rows).astype(np.int32)
    split = generator.integers(0, 3, nodes).astype(np.int32)
    children = [levels[column] for column in split]
    first = np.cumsum([0, *children[:-1]], dtype=np.int32)
    numbers = generator.integers(-1, 9, sum(children)).astype(np.int32)
    below = descend(columns, where, split, first, numbers, Inline())
    for row in range(rows):
        node = where[row]
        expected = -1 if node < 0 else numbers[first[node] + columns[split[node]][row]]
        assert below[row] == expected
