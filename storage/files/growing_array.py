"""Arrays that grow on the disk, so that an upload need not fit in memory.

The file has no name from its first byte on, so nothing of it outlives the process. The array is a
mapping of the file, which the system writes back to the disk when memory is short.
"""

from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

#: Values that are copied in one write.
PIECE = 1 << 20


class GrowingArray:
    """An array of one dimension in a nameless file of ``folder``."""

    def __init__(self, folder: Path | None, dtype: DTypeLike) -> None:
        self._dtype, self._length = np.dtype(dtype), 0
        self._file = TemporaryFile(dir=folder)  # noqa: SIM115 - lives as long as the array

    def append(self, values: NDArray[Any]) -> None:
        values = np.ascontiguousarray(values, self._dtype)
        self._file.write(values.data)
        self._length += len(values)

    def extend(self, length: int) -> NDArray[Any]:
        """Append ``length`` zeros. Returns the whole array."""
        self._length += length
        self._file.truncate(self._length * self._dtype.itemsize)
        return self.array()

    def array(self) -> NDArray[Any]:
        """All values, mapped; a write to the array changes the file."""
        self._file.flush()
        if not self._length:
            return np.zeros(0, self._dtype)
        # A plain array over the mapping: kernels are compiled for arrays, not for subclasses.
        return np.asarray(np.memmap(self._file, self._dtype, "r+", shape=(self._length,)))


def sorted_copy(values: NDArray[Any], folder: Path | None) -> NDArray[Any]:
    """The values in ascending order, in a file of their own that is sorted in place."""
    copy = GrowingArray(folder, values.dtype)
    for start in range(0, len(values), PIECE):
        copy.append(values[start : start + PIECE])
    ordered = copy.array()
    ordered.sort()
    return ordered
