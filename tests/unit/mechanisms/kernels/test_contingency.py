"""Counts against plain loops, whatever the types, the blocks and the workers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.kernels import contingency, pairs
from mechanisms.kernels.contingency import level_counts
from mechanisms.kernels.level_counts import counts_by_levels
from mechanisms.model.executor import Inline
from mechanisms.model.records import TableRecords


def plain(codes: Any, labels: Any, levels: int, classes: int) -> list[list[int]]:
    counts = [[0] * classes for _ in range(levels)]
    for code, label in zip(codes, labels, strict=True):
        counts[int(code)][int(label)] += 1
    return counts


@settings(deadline=None, max_examples=50)
@given(
    rows=st.integers(0, 300),
    levels=st.integers(1, 6),
    classes=st.integers(1, 4),
    seed=st.integers(0, 2**32),
)
@pytest.mark.parametrize("types", [(np.uint8, np.uint8), (np.uint16, np.uint8)])
def test_random_columns(types: Any, rows: int, levels: int, classes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, levels, rows).astype(types[0])
    labels = rng.integers(0, classes, rows).astype(types[1])
    constant = np.zeros(rows, np.uint8)
    records = TableRecords({"a": codes, "b": labels, "c": constant}, {})
    names = [("a", "b"), ("c", "b"), ("a", "b"), ("b",)]
    sizes = {"a": levels, "b": classes, "c": 2}
    tables = counts_by_levels(records, names, sizes, Inline())
    assert tables[0].tolist() == tables[2].tolist() == plain(codes, labels, levels, classes)
    assert tables[1].tolist() == plain(constant, labels, 2, classes)
    assert tables[3].tolist() == np.bincount(labels, minlength=classes).tolist()
    assert level_counts(codes, levels).tolist() == np.bincount(codes, minlength=levels).tolist()


def test_codes_of_more_than_two_bytes_are_counted() -> None:
    codes = np.array([0, 70_000, 70_000, 65_536], np.int32)
    records = TableRecords({"a": codes, "b": np.array([0, 1, 1, 0], np.uint8)}, {})
    (table,) = counts_by_levels(records, [("a", "b")], {"a": 70_001, "b": 2}, Inline())
    places = np.argwhere(table).tolist()
    assert places == [[0, 0], [65_536, 0], [70_000, 1]]
    assert table[70_000, 1] == 2


def test_blocks_and_workers_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Pool:
        workers = 3

        def map(self, kernel: Any, parts: Any) -> list[Any]:
            with ThreadPoolExecutor(3) as pool:
                return list(pool.map(kernel, parts))

    monkeypatch.setattr(contingency, "BLOCK", 100)
    monkeypatch.setattr(pairs, "BLOCK", 100)
    rng = np.random.default_rng(1)
    codes, labels = rng.integers(0, 5, 1234), rng.integers(0, 3, 1234)
    records = TableRecords({"a": codes, "b": labels}, {})
    (table,) = counts_by_levels(records, [("a", "b")], {"a": 5, "b": 3}, Pool())
    assert table.tolist() == plain(codes, labels, 5, 3)
    assert level_counts(codes, 5, Pool()).tolist() == np.bincount(codes).tolist()
