"""All pairs of tables, entropies of subsets and clusters against plain loops."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.kernels import assignment, pairs, subsets
from mechanisms.kernels.assignment import cluster_counts
from mechanisms.kernels.columns import stacked
from mechanisms.kernels.pairs import packed, pair_tables
from mechanisms.kernels.subsets import purest_levels, subset_sums
from mechanisms.model.executor import Executor


class Pool(Executor):
    workers = 3

    def map(self, kernel: Any, parts: Any) -> list[Any]:
        with ThreadPoolExecutor(3) as pool:
            return list(pool.map(kernel, parts))


def plain_table(first: Any, second: Any, shape: tuple[int, int]) -> list[list[int]]:
    counts = [[0] * shape[1] for _ in range(shape[0])]
    for a, b in zip(first, second, strict=True):
        counts[int(a)][int(b)] += 1
    return counts


def plain_sums(codes: Any, chosen: Any, sums: Any) -> int:
    return sum(
        int(sums[n]) for n in Counter(zip(*(codes[a] for a in chosen), strict=True)).values()
    )


def plain_purest(codes: Any, levels: Any, target: int, listed: Any) -> dict[int, int]:
    best = {0: 0}
    for chosen in listed:
        groups: dict[Any, Counter[int]] = {}
        for row in range(codes.shape[1]):
            groups.setdefault(tuple(codes[chosen, row]), Counter())[int(codes[target, row])] += 1
        for group in groups.values():
            fewest = min(group[label] for label in range(levels[target]))
            beta = max(fewest, 1) - 1
            best[beta] = max(best.get(beta, 0), sum(group.values()) - fewest)
    return best


def plain_clusters(codes: Any, offsets: Any, partial: Any) -> tuple[list[int], list[list[int]]]:
    sizes = [0] * partial.shape[1]
    values = [[0] * partial.shape[1] for _ in range(len(partial))]
    for row in codes.T:
        cells = [int(o + c) for o, c in zip(offsets, row, strict=True)]
        distances = [sum(partial[cell, k] for cell in cells) for k in range(partial.shape[1])]
        nearest = distances.index(min(distances))
        sizes[nearest] += 1
        for cell in cells:
            values[cell][nearest] += 1
    return sizes, values


@settings(deadline=None, max_examples=40)
@given(
    rows=st.integers(0, 300),
    levels=st.lists(st.sampled_from([1, 2, 2, 2, 3, 5, 300]), min_size=2, max_size=6),
    seed=st.integers(0, 2**32),
)
def test_all_pairs(rows: int, levels: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns = [(rng.integers(0, n, rows).astype(np.uint8 if n <= 256 else np.uint16), n)
               for n in levels]  # fmt: skip
    pairs = [*combinations(range(len(levels)), 2), (0, 0), (1, 0)]
    for (i, j), table in zip(pairs, pair_tables(columns, pairs), strict=True):
        assert table.dtype == np.int64
        assert table.tolist() == plain_table(columns[i][0], columns[j][0], (levels[i], levels[j]))


def test_blocks_tiles_and_workers_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    columns = [(rng.integers(0, n, 2345).astype(np.uint8), n) for n in (2, 3, 2, 2, 4)]
    columns_of_pairs = list(combinations(range(5), 2))
    whole = [table.tolist() for table in pair_tables(columns, columns_of_pairs)]
    partial = rng.random((13, 4))
    clusters = cluster_counts(columns, partial)
    monkeypatch.setattr(pairs, "BLOCK", 128)
    monkeypatch.setattr(assignment, "BLOCK", 100)
    assert [table.tolist() for table in pair_tables(columns, columns_of_pairs, Pool())] == whole
    offsets = [0, 2, 5, 7, 9]
    codes = stacked(columns)
    plain = plain_clusters(codes, offsets, partial)
    for counts in (clusters, cluster_counts(columns, partial, Pool())):
        assert (counts[0].tolist(), counts[1].tolist()) == plain


def test_packed_bits_are_the_rows() -> None:
    rng = np.random.default_rng(3)
    for rows in (0, 1, 63, 64, 65, 200):
        columns = [(rng.integers(0, 2, rows).astype(np.uint8), 2) for _ in range(3)]
        words = packed(columns)
        ones = [sum(int(word).bit_count() for word in row) for row in words]
        assert ones == [int(codes.sum()) for codes, _ in columns]


@settings(deadline=None, max_examples=40)
@given(
    rows=st.integers(1, 60),
    levels=st.lists(st.integers(1, 4), min_size=3, max_size=5),
    size=st.integers(1, 2),
    seed=st.integers(0, 2**32),
    dense=st.sampled_from([1, 6, 1 << 12]),
)
def test_subsets(rows: int, levels: list[int], size: int, seed: int, dense: int) -> None:
    rng = np.random.default_rng(seed)
    codes = np.array([rng.integers(0, n, rows) for n in levels], np.uint8)
    sizes = np.array(levels, np.int64)
    sums = np.cumsum([0, *rng.integers(0, 100, rows)]).astype(np.int64)
    before, subsets.DENSE = subsets.DENSE, dense
    try:
        every = np.array(list(combinations(range(len(levels)), size + 1)), np.int64)
        results = subset_sums(codes, sizes, every, sums)
        assert results.tolist() == [plain_sums(codes, chosen, sums) for chosen in every]
        assert subset_sums(codes, sizes, every, sums, Pool()).tolist() == results.tolist()
        listed = np.array(list(combinations(range(1, len(levels)), size)), np.int64)
        purest = plain_purest(codes, levels, 0, listed)
        for executor in (None, Pool()):
            largest = purest_levels(codes, sizes, 0, listed, executor)
            assert {b: int(m) for b, m in enumerate(largest) if m >= 0} == purest
    finally:
        subsets.DENSE = before
