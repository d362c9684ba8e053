"""Columns side by side in one type, for kernels that read many attributes together."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: One attribute: the code of each row, and the public number of levels.
Column = tuple[NDArray[Any], int]


def stacked(columns: Sequence[Column], rows: slice = slice(None)) -> NDArray[Any]:
    """These rows of all columns, (columns, rows), contiguous: uint8 if all codes fit it, else
    uint16.

    There are two types only, whatever the store wrote, so kernels compile at most twice.
    """
    widest = max((levels for _, levels in columns), default=1)
    count = len(range(*rows.indices(len(columns[0][0])))) if columns else 0
    together = np.empty((len(columns), count), np.uint8 if widest <= 256 else np.uint16)
    for row, (codes, _) in zip(together, columns, strict=True):
        row[:] = codes[rows]
    return together
