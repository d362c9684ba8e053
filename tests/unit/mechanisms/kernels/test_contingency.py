"""Counts against plain loops, whatever the types, the blocks and the workers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.kernels import contingency
from mechanisms.kernels.contingency import contingency_tables, level_counts


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
    columns = [(codes, levels), (constant, 2)]
    tables = contingency_tables(columns, (labels, classes))
    assert tables[0].tolist() == plain(codes, labels, levels, classes)
    assert tables[1].tolist() == plain(constant, labels, 2, classes)
    assert level_counts(codes, levels).tolist() == np.bincount(codes, minlength=levels).tolist()


def test_blocks_and_workers_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Pool:
        workers = 3

        def map(self, kernel: Any, parts: Any) -> list[Any]:
            with ThreadPoolExecutor(3) as pool:
                return list(pool.map(kernel, parts))

    monkeypatch.setattr(contingency, "BLOCK", 100)
    rng = np.random.default_rng(1)
    codes, labels = rng.integers(0, 5, 1234), rng.integers(0, 3, 1234)
    tables = contingency_tables([(codes, 5), (labels, 3)], (labels, 3), Pool())
    assert tables[0].tolist() == plain(codes, labels, 5, 3)
    assert tables[1].tolist() == plain(labels, labels, 3, 3)
    assert level_counts(codes, 5, Pool()).tolist() == np.bincount(codes).tolist()
