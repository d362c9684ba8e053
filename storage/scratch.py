"""Work that several machines share through the data folder: jobs that say all, names that say
nothing.

    DIR/cluster/<random>.npy      an array that kernels read, as long as it lives in the service
    DIR/cluster/<random>/plan     a job: its kernel, the names of its arrays, its parts
    DIR/cluster/<random>/<n>      what was found in part n

A task is a job's random name and the number of a part. What is private, the results too, goes
through this folder and no other way; it is as closed as the rest (``storage.files``), and what a
crash leaves is swept away like an upload.
"""

from __future__ import annotations

import os
import pickle
import re
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.compiled import KERNELS
from mechanisms.kernels.executor import Arrays, Found
from storage.folders import create_file, make_folder, remove_folder

Kernel = Callable[[Arrays, Any], Found]

NAME = re.compile(r"[0-9a-f]{32}")


class OtherKernels(RuntimeError):
    """A job is of a service whose kernels are not those of this process."""


@dataclass(frozen=True)
class Job:
    """What a worker needs for any part of a job, its arrays mapped."""

    kernel: Kernel
    arrays: Arrays
    parts: Sequence[Any]


@dataclass(frozen=True)
class _Plan:
    kernels: str
    kernel: Kernel
    #: Of each array its file below the root, and whether it may be written to where it lives.
    names: dict[str, tuple[str, bool]]
    parts: Sequence[Any]


class Scratch:
    """The shared folder below one root. Methods are safe to call from any thread."""

    def __init__(self, root: Path) -> None:
        self._root, self._folder = root.resolve(), root.resolve() / "cluster"
        make_folder(self._folder)
        self._stored: dict[int, str] = {}
        # Of the thread that holds it: an array may be forgotten while another is stored.
        self._lock = RLock()

    @contextmanager
    def job(self, kernel: Kernel, arrays: Arrays, parts: Sequence[Any]) -> Iterator[str]:
        """The name of a new job, gone with all that was found when the block ends."""
        name = token_hex(16)
        folder = self._folder / name
        make_folder(folder)
        try:
            names = {
                key: (self._name(array), array.flags.writeable) for key, array in arrays.items()
            }
            with create_file(folder / "plan") as out:
                pickle.dump(_Plan(KERNELS, kernel, names, parts), out)
            yield name
        finally:
            # A worker that was taken for lost may still write here; what is left is swept later.
            with suppress(OSError):
                remove_folder(folder)

    def open(self, name: str) -> Job:
        """A job by its name. Raises: FileNotFoundError when it is over; OtherKernels."""
        # Only the service writes plans, and whoever writes here may run code on workers anyway.
        plan: _Plan = pickle.loads((self._of(name) / "plan").read_bytes())
        if plan.kernels != KERNELS:
            raise OtherKernels("the worker has other kernels than the service")
        arrays = {key: self._map(*stored) for key, stored in plan.names.items()}
        return Job(plan.kernel, arrays, plan.parts)

    def write(self, name: str, part: int, found: Found) -> None:
        """Leave what was found in a part; done twice, both write the same."""
        folder = self._of(name)
        partial = folder / f"{part}.{token_hex(8)}"
        with create_file(partial) as out:
            np.lib.format.write_array(out, np.array([len(found)]), allow_pickle=False)
            for array in found:
                np.lib.format.write_array(out, np.ascontiguousarray(array), allow_pickle=False)
        os.rename(partial, folder / str(part))

    def read(self, name: str, part: int) -> Found:
        """What was found in a part; FileNotFoundError when nothing was.

        Arrays and nothing else: what workers write is not code to the service.
        """
        with (self._of(name) / str(part)).open("rb") as file:
            (count,) = np.lib.format.read_array(file, allow_pickle=False)
            return tuple(
                np.lib.format.read_array(file, allow_pickle=False) for _ in range(int(count))
            )

    def is_over(self, name: str) -> bool:
        return not self._of(name).exists()

    def _of(self, name: str) -> Path:
        if not NAME.fullmatch(name):
            raise ValueError("not the name of a job")
        return self._folder / name

    def _name(self, array: NDArray[Any]) -> str:
        """Where workers find an array: where it is mapped from, or a copy made now."""
        mapped = self._mapped_from(array)
        if mapped is not None:
            return mapped
        with self._lock:
            known = self._stored.get(id(array))
        if known is not None:
            return known
        path = self._folder / f"{token_hex(16)}.npy"
        name = str(path.relative_to(self._root))
        with create_file(path) as out:
            np.lib.format.write_array(out, np.ascontiguousarray(array), allow_pickle=False)
        with self._lock:
            self._stored[id(array)] = name
        weakref.finalize(array, self._forget, id(array), path)
        return name

    def _mapped_from(self, array: NDArray[Any]) -> str | None:
        """The file below the root that an array is the whole of."""
        base = array.base
        if not isinstance(base, np.memmap) or base.filename is None:
            return None
        whole = (base.dtype, base.shape, base.ctypes.data)
        if (array.dtype, array.shape, array.ctypes.data) != whole:
            return None
        path = Path(base.filename).resolve()
        return str(path.relative_to(self._root)) if path.is_relative_to(self._root) else None

    def _forget(self, identity: int, path: Path) -> None:
        with self._lock:
            self._stored.pop(identity, None)
        path.unlink(missing_ok=True)

    def _map(self, file: str, writeable: bool) -> NDArray[Any]:
        # Compiled code knows two types, and finds here the one that it has there. What it wrote
        # would be a copy of its own.
        mapped = np.lib.format.open_memmap(self._root / file, mode="c" if writeable else "r")
        return np.asarray(mapped)
