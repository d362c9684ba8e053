"""Folders of arrays: each is written once, completely or not at all, then mapped read-only.

``storage.files.manifest`` describes the manifest. It holds the names of the arrays, because a name
such as that of an attribute need not be a valid file name.
"""

import os
import shutil
from collections.abc import Mapping
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from secrets import token_hex
from typing import Any

import numpy as np
from numpy.typing import NDArray

from storage.files.folders import create_file, make_folder, sync
from storage.files.manifest import (
    MANIFEST,
    ArrayFile,
    DamagedFolder,
    Manifest,
    layout_of,
    new_salt,
)
from storage.files.mapping import map_array


def write_arrays(folder: Path, kind: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write one-dimensional arrays to the new ``folder``. Raises: FileExistsError.

    All files are synced before the folder gets its name.
    """
    if folder.exists():
        raise FileExistsError(folder)
    partial = folder.with_name(f".{token_hex(16)}")
    make_folder(partial)
    try:
        salt = new_salt()
        entries = tuple(
            _write(partial, f"{number}.npy", name, array, salt)
            for number, (name, array) in enumerate(arrays.items())
        )
        with create_file(partial / MANIFEST) as out:
            out.write(Manifest(kind, salt, entries).encoded())
        sync(partial / MANIFEST)
        sync(partial)
        os.rename(partial, folder)
        sync(folder.parent)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def open_arrays(folder: Path, *kinds: str) -> tuple[str, dict[str, NDArray[Any]]]:
    """The kind of a folder, one of ``kinds``, and its arrays, memory-mapped and read-only.

    Compares types and lengths with the manifest; ``storage.files.manifest.check_files`` compares
    the bytes. Raises: FileNotFoundError if there is no such folder; DamagedFolder.
    """
    kind, entries = layout_of(folder)
    if kind not in kinds:
        raise DamagedFolder(f"not a folder of {' or '.join(kinds)}")
    arrays = {}
    for name, file, dtype, length in entries:
        array = _open(folder / file)
        if (array.dtype.str, array.shape) != (dtype, (length,)):
            raise DamagedFolder("an array differs from its manifest")
        arrays[name] = array
    return kind, arrays


def _write(folder: Path, file: str, name: str, array: NDArray[Any], salt: bytes) -> ArrayFile:
    """Write one array. Its digest is that of the bytes in memory, not of the file."""
    if array.ndim != 1 or array.dtype.hasobject:
        raise ValueError("arrays in a folder have one dimension and no objects")
    header = BytesIO()
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(array))
    parts = (header.getbuffer(), np.ascontiguousarray(array).view(np.uint8).data)
    digest, size = sha256(salt), 0
    with create_file(folder / file) as out:
        for part in parts:
            out.write(part)
            digest.update(part)
            size += len(part)
    sync(folder / file)
    return ArrayFile(name, file, array.dtype.str, len(array), size, digest.hexdigest())


def _open(path: Path) -> NDArray[Any]:
    try:
        return map_array(path)
    except (ValueError, EOFError) as error:  # the file is cut, or its header is damaged
        raise DamagedFolder("an array cannot be mapped") from error
