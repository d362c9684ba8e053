"""Arrays that grow on the disk, so that an upload need not fit in memory.

The temporary file never has a name, so the system frees it when the process ends. The array is a
mapping of the file, which the system writes back to the disk when memory is short.
"""

import os
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

#: The number of values that are copied at a time, which bounds the memory of a copy.
PIECE = 1 << 20


class GrowingArray:
    """A growing array of one dimension, in a file without a name on the disk of ``folder``."""

    def __init__(self, folder: Path | None, dtype: DTypeLike) -> None:
        self._dtype, self._length = np.dtype(dtype), 0
        self._file = TemporaryFile(dir=folder)  # noqa: SIM115 - lives as long as the array

    def append(self, values: NDArray[Any]) -> None:
        values = np.ascontiguousarray(values, self._dtype)
        self._file.write(values.data)
        self._length += len(values)

    def extend(self, length: int) -> NDArray[Any]:
        """Append ``length`` zeros. Returns the whole array."""
        if length:
            # Danger: on a full disk, a write to mapped blocks that are not allocated yet kills the
            # process. So the blocks are allocated first, which raises OSError instead.
            size = self._dtype.itemsize
            self._file.flush()
            os.posix_fallocate(self._file.fileno(), self._length * size, length * size)
            self._file.seek(0, os.SEEK_END)
        self._length += length
        return self.array()

    def array(self) -> NDArray[Any]:
        """All values, memory-mapped. A write to the array changes the file."""
        self._file.flush()
        if not self._length:
            return np.zeros(0, self._dtype)
        # Compiled kernels accept plain arrays only, and not subclasses such as `numpy.memmap`, by
        # which the file is mapped.
        return np.asarray(np.memmap(self._file, self._dtype, "r+", shape=(self._length,)))


def copy_of(values: NDArray[Any], places: NDArray[np.int64], folder: Path | None) -> NDArray[Any]:
    """The values at some places, in a new file."""
    copy = GrowingArray(folder, values.dtype)
    for start in range(0, len(places), PIECE):
        copy.append(values[places[start : start + PIECE]])
    return copy.array()


def sorted_copy(values: NDArray[Any], folder: Path | None) -> NDArray[Any]:
    """A copy of the values in ascending order, in a new file that is sorted in place."""
    copy = GrowingArray(folder, values.dtype)
    for start in range(0, len(values), PIECE):
        copy.append(values[start : start + PIECE])
    ordered = copy.array()
    ordered.sort()
    return ordered
