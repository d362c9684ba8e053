"""Columns side by side in one type, for kernels that read many attributes together."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: The column of an attribute has the code of its value in each row, and the public number of values
#: that the attribute can have (its levels).
Column = tuple[NDArray[Any], int]


def stacked(columns: Sequence[Column], rows: slice = slice(None)) -> NDArray[Any]:
    """These rows of all columns, (columns, rows), contiguous, of the smallest type for all codes.

    That is uint8, uint16 or int32, whatever the store wrote, so kernels compile for few types.
    """
    widest = max((levels for _, levels in columns), default=1)
    count = len(range(*rows.indices(len(columns[0][0])))) if columns else 0
    small = np.uint8 if widest <= 1 << 8 else np.uint16
    together = np.empty((len(columns), count), small if widest <= 1 << 16 else np.int32)
    for row, (codes, _) in zip(together, columns, strict=True):
        row[:] = codes[rows]
    return together
