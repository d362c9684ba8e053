"""Counts of the levels of one attribute.

A processor cannot overlap consecutive increments of one counter, and real columns repeat levels.
Four interleaved sets of counters, summed at the end, make the work independent of the row order.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.compiled import compiled
from mechanisms.model.executor import Executor, Inline

Codes = NDArray[Any]
Counts = NDArray[np.int64]

#: Rows are counted in parts of this many. So large a part outweighs the overhead of starting it,
#: and there are still enough parts to share among workers.
BLOCK = 1 << 20


def level_counts(codes: Codes, levels: int, executor: Executor | None = None) -> Counts:
    """The number of rows with each level, int64 (levels,); codes lie in [0, levels)."""

    def part(start: int) -> Counts:
        return _level_counts(codes[start : start + BLOCK], levels)

    parts = (executor or Inline()).map(part, range(0, len(codes), BLOCK))
    return sum(parts, np.zeros(levels, np.int64))


@compiled
def _level_counts(codes: Codes, levels: int) -> Counts:
    counts = np.zeros((4, levels), np.int64)
    for row in range(len(codes)):
        counts[row & 3, codes[row]] += 1
    merged: Counts = counts.sum(axis=0)
    return merged
