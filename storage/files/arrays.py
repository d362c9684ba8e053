"""Folders of arrays: each is written once, completely or not at all, then mapped read-only.

``manifest.json`` holds the names of the arrays, because a name such as that of an attribute need
not be a valid file name. It also holds their types and lengths, which ``open_arrays`` checks.
"""

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from secrets import token_hex
from typing import Any

import numpy as np
from numpy.typing import NDArray

from storage.files.folders import create_file, make_folder, sync

FORMAT = 2
MANIFEST = "manifest.json"


class DamagedFolder(RuntimeError):
    """A folder of arrays differs from its manifest, or has another kind or format."""


def write_arrays(folder: Path, kind: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write one-dimensional arrays to the new ``folder``. Raises: FileExistsError.

    All files are synced before the folder gets its name.
    """
    if folder.exists():
        raise FileExistsError(folder)
    partial = folder.with_name(f".{token_hex(16)}")
    make_folder(partial)
    try:
        entries = []
        for number, (name, array) in enumerate(arrays.items()):
            file = f"{number}.npy"
            _write(partial / file, array)
            entries.append(
                {"name": name, "file": file, "dtype": array.dtype.str, "length": len(array)}
            )
        manifest = {"format": FORMAT, "kind": kind, "arrays": entries}
        with create_file(partial / MANIFEST) as out:
            out.write(json.dumps(manifest, ensure_ascii=True, indent=1).encode())
        sync(partial / MANIFEST)
        sync(partial)
        os.rename(partial, folder)
        sync(folder.parent)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def open_arrays(folder: Path, *kinds: str) -> tuple[str, dict[str, NDArray[Any]]]:
    """The kind of a folder, one of ``kinds``, and its arrays, memory-mapped and read-only.

    Raises: FileNotFoundError if there is no such folder; DamagedFolder.
    """
    manifest = json.loads((folder / MANIFEST).read_bytes())
    if manifest["format"] != FORMAT or manifest["kind"] not in kinds:
        raise DamagedFolder(f"not a folder of {' or '.join(kinds)} in format {FORMAT}")
    arrays = {}
    for entry in manifest["arrays"]:
        array = _open(folder / entry["file"])
        if (array.dtype.str, array.shape) != (entry["dtype"], (entry["length"],)):
            raise DamagedFolder("an array differs from its manifest")
        arrays[entry["name"]] = array
    return manifest["kind"], arrays


def files_of(folder: Path) -> list[str]:
    """The files that the manifest of a folder names."""
    return [entry["file"] for entry in json.loads((folder / MANIFEST).read_bytes())["arrays"]]


def _write(path: Path, array: NDArray[Any]) -> None:
    if array.ndim != 1:
        raise ValueError("arrays in a folder have one dimension")
    with create_file(path) as out:
        np.lib.format.write_array(out, np.ascontiguousarray(array), allow_pickle=False)
    sync(path)


def _open(path: Path) -> NDArray[Any]:
    try:
        mapped = np.lib.format.open_memmap(path, mode="r")
    except (ValueError, EOFError) as error:  # the file is cut, or its header is damaged
        raise DamagedFolder("an array cannot be mapped") from error
    # Compiled kernels accept plain arrays and not their subclasses, such as the mapping.
    return np.asarray(mapped)
