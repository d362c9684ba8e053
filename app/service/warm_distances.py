"""Made-up columns of every type for the kernels of many attributes at once, for ``warm``."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from mechanisms.kernels.assignment import cluster_counts
from mechanisms.kernels.columns import Column, stacked
from mechanisms.kernels.pairs import pair_tables
from mechanisms.kernels.subsets import purest_levels, subset_sums

ROWS = 8


def warm_distances() -> None:
    """Count pairs, subsets and clusters of columns of one byte and of two."""
    numbers = np.arange(ROWS)
    narrow: list[Column] = [((numbers % n).astype(np.uint8), n) for n in (2, 2, 3)]
    wide: list[Column] = [*narrow, (numbers.astype(np.uint16), 300)]
    sums = np.arange(ROWS + 1, dtype=np.int64)
    for columns in (narrow, wide):
        pairs = list(combinations(range(len(columns)), 2))
        pair_tables(columns, pairs)
        codes = stacked(columns)
        levels = np.array([size for _, size in columns], np.int64)
        subsets = np.array(pairs[-2:], np.int64)
        subset_sums(codes, levels, subsets, sums)
        purest_levels(codes, levels, 0, subsets)
        cluster_counts(columns, np.zeros((int(levels.sum()), 2)))
