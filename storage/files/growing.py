"""Arrays that grow on the disk: what an upload holds need not fit in memory.

The file has no name from its first byte on, so nothing of it outlives the process; the array is a
mapping of it, which the system writes back to the disk when memory is short.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


class GrowingArray:
    """One array of one dimension, in a nameless file of ``folder``."""

    def __init__(self, folder: Path | None, dtype: DTypeLike) -> None:
        self._dtype, self._length = np.dtype(dtype), 0
        self._file = TemporaryFile(dir=folder)  # noqa: SIM115 - lives as long as the array

    def append(self, values: NDArray[Any]) -> None:
        values = np.ascontiguousarray(values, self._dtype)
        self._file.write(values.data)
        self._length += len(values)

    def extend(self, length: int) -> NDArray[Any]:
        """Add so many zeros, and see all."""
        self._length += length
        self._file.truncate(self._length * self._dtype.itemsize)
        return self.seen()

    def seen(self) -> NDArray[Any]:
        """All that was added, mapped; what is written to it stays with it."""
        self._file.flush()
        if not self._length:
            return np.zeros(0, self._dtype)
        # A plain array over the mapping: kernels are compiled for arrays, not for subclasses.
        return np.asarray(np.memmap(self._file, self._dtype, "r+", shape=(self._length,)))


def sorted_copy(values: NDArray[Any], folder: Path | None) -> NDArray[Any]:
    """The same in ascending order: a file of its own, sorted where it lies."""
    copy = GrowingArray(folder, values.dtype)
    for part in pieces(values):
        copy.append(part)
    ordered = copy.seen()
    ordered.sort()
    return ordered


def pieces(values: NDArray[Any], length: int = 1 << 20) -> Iterable[NDArray[Any]]:
    return (values[start : start + length] for start in range(0, len(values), length))
