"""Arrays mapped read-only from files. A mapping keeps no file descriptor.

Descriptors are few, and a service may have thousands of arrays open. ``numpy.memmap`` keeps one
descriptor for each of them.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


class MappedArray(np.ndarray[Any, np.dtype[Any]]):
    """An array that is the whole content of the file ``path``."""

    path: Path


def map_array(path: Path) -> NDArray[Any]:
    """The array of one dimension in a file in NumPy's format, read-only.

    Its base is a ``MappedArray``: compiled kernels accept plain arrays and not their subclasses.
    Raises: ValueError or EOFError if the file is cut or damaged; OSError.
    """
    # The library pyarrow is imported here, so that programs that map no records do not load it.
    import pyarrow as pa

    with path.open("rb") as file:
        if np.lib.format.read_magic(file) != (1, 0):
            raise ValueError("the array is in another version of the format")
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        start = file.tell()
    if dtype.hasobject:
        raise ValueError("an array of objects cannot be mapped")
    with pa.memory_map(str(path)) as source:
        buffer = source.read_buffer()  # the mapping lives as long as this buffer
    if len(shape) != 1 or buffer.size != start + shape[0] * dtype.itemsize:
        raise ValueError("the array has another length than its header says")
    mapped = MappedArray(shape, dtype, buffer, start)
    mapped.path = path
    return np.asarray(mapped)


def mapped_from(array: NDArray[Any]) -> Path | None:
    """The file whose whole content ``array`` maps; None if there is none."""
    base = array.base
    if not isinstance(base, MappedArray):
        return None
    whole = (base.dtype, base.shape, base.ctypes.data)
    return base.path if (array.dtype, array.shape, array.ctypes.data) == whole else None
