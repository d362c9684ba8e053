"""Counts of levels, and of attribute levels by class, which utilities of tables are made of.

A processor cannot overlap consecutive increments of one counter, and real columns repeat levels.
Four interleaved sets of counters, summed at the end, make the work independent of the row order.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.compiled import compiled
from mechanisms.model.executor import Executor, Inline

Codes = NDArray[Any]
Counts = NDArray[np.int64]

#: Rows per part: large enough to hide the overhead of a part, small enough to share among workers.
BLOCK = 1 << 20


def level_counts(codes: Codes, levels: int, executor: Executor | None = None) -> Counts:
    """The number of rows with each level, int64 (levels,); codes lie in [0, levels)."""

    def part(start: int) -> Counts:
        return _level_counts(codes[start : start + BLOCK], levels)

    parts = (executor or Inline()).map(part, range(0, len(codes), BLOCK))
    return sum(parts, np.zeros(levels, np.int64))


def contingency_tables(
    columns: Sequence[tuple[Codes, int]],
    classes: tuple[Codes, int],
    executor: Executor | None = None,
) -> list[Counts]:
    """Attribute × class counts, one int64 array (levels, classes) per column.

    Args:
        columns: codes of each attribute, and its number of public levels.
        classes: the same for the class attribute. All codes have one length and lie in range.
    """
    labels, labels_count = classes
    parts = [
        (index, start) for index in range(len(columns)) for start in range(0, len(labels), BLOCK)
    ]

    def part(where: tuple[int, int]) -> Counts:
        index, start = where
        codes, levels = columns[index]
        rows = slice(start, start + BLOCK)
        return _contingency(codes[rows], labels[rows], levels, labels_count)

    tables = [np.zeros((levels, labels_count), np.int64) for _, levels in columns]
    for (index, _), counts in zip(parts, (executor or Inline()).map(part, parts), strict=True):
        tables[index] += counts
    return tables


@compiled
def _level_counts(codes: Codes, levels: int) -> Counts:
    counts = np.zeros((4, levels), np.int64)
    for row in range(len(codes)):
        counts[row & 3, codes[row]] += 1
    merged: Counts = counts.sum(axis=0)
    return merged


@compiled
def _contingency(codes: Codes, labels: Codes, levels: int, labels_count: int) -> Counts:
    counts = np.zeros((4, levels, labels_count), np.int64)
    for row in range(len(codes)):
        counts[row & 3, codes[row], labels[row]] += 1
    merged: Counts = counts.sum(axis=0)
    return merged
