"""Columns side by side, in one type: what kernels of many attributes at once read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Codes of one attribute and how many public levels it has.
Column = tuple[NDArray[Any], int]


def stacked(columns: Sequence[Column], rows: slice = slice(None)) -> NDArray[Any]:
    """The given rows of all columns, (columns, rows), contiguous: uint8 where all codes fit it.

    Two types and no more, whatever the store wrote, so that kernels are compiled twice at most.
    """
    widest = max((levels for _, levels in columns), default=1)
    count = len(range(*rows.indices(len(columns[0][0])))) if columns else 0
    together = np.empty((len(columns), count), np.uint8 if widest <= 256 else np.uint16)
    for row, (codes, _) in zip(together, columns, strict=True):
        row[:] = codes[rows]
    return together
