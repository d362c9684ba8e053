"""Jobs of kernels that several machines share, as files of ``storage.files.shared``.

    cluster/<random>.npy      an array that kernels read, as long as it lives in the service
    cluster/<random>/plan     a job: its kernel, the names of its arrays, its parts
    cluster/<random>/<n>      what was found in part n

A task is a job's random name and the number of a part. What is private, the results too, goes
through these files and no other way. They are as closed as the rest of the data folder
(``storage.records.data_folder``). What a crash leaves is swept away like an upload.
"""

from __future__ import annotations

import pickle
import re
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from threading import RLock
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.compiled import KERNELS
from mechanisms.model.executor import Arrays, PartResult
from storage.errors import StoreFailed
from storage.files.shared import Shared

Kernel = Callable[[Arrays, Any], PartResult]

NAME = re.compile(r"[0-9a-f]{32}")
#: Seconds after which a copy is written again when it is asked for: half of the age at which it is
#: swept (``storage.records.retention``), so a job that begins now has as long.
FRESH = 43_200.0


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
    """The jobs in one shared place. Methods are safe to call from any thread."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        #: Copies of arrays that live, and when each was written last.
        self._stored: dict[int, tuple[str, float]] = {}
        # Of the thread that holds it: an array may be forgotten while another is stored.
        self._lock = RLock()

    @contextmanager
    def job(self, kernel: Kernel, arrays: Arrays, parts: Sequence[Any]) -> Iterator[str]:
        """The name of a new job, gone with all that was found when the block ends."""
        name = token_hex(16)
        try:
            names = {
                key: (self._name(array), array.flags.writeable) for key, array in arrays.items()
            }
            plan = _Plan(KERNELS, kernel, names, parts)
            self._shared.write(_plan_of(name), lambda out: pickle.dump(plan, out))
            yield name
        finally:
            # What cannot be removed now is swept later.
            with suppress(OSError, StoreFailed):
                # A worker that was taken for lost may still write: it looks for the plan then.
                self._shared.remove(_plan_of(name))
                for file in self._shared.names(_folder_of(name)):
                    self._shared.remove(file)

    def open(self, name: str) -> Job:
        """A job by its name. Raises: FileNotFoundError when it is over; OtherKernels."""
        # Only the service writes plans, and whoever writes here may run code on workers anyway.
        plan: _Plan = pickle.loads(self._shared.read(_plan_of(name)))
        if plan.kernels != KERNELS:
            raise OtherKernels("the worker has other kernels than the service")
        arrays = {key: self._map(*stored) for key, stored in plan.names.items()}
        return Job(plan.kernel, arrays, plan.parts)

    def write(self, name: str, part: int, found: PartResult) -> None:
        """Leave what was found in a part; done twice, both write the same."""

        def content(out: BinaryIO) -> None:
            np.lib.format.write_array(out, np.array([len(found)]), allow_pickle=False)
            for array in found:
                np.lib.format.write_array(out, np.ascontiguousarray(array), allow_pickle=False)

        self._shared.write(_part_of(name, part), content)
        if self.is_over(name):
            self._shared.remove(_part_of(name, part))

    def read(self, name: str, part: int) -> PartResult:
        """What was found in a part; FileNotFoundError when nothing was.

        Arrays and nothing else: what workers write is not code to the service.
        """
        with self._shared.file(_part_of(name, part)) as path, path.open("rb") as file:
            (count,) = np.lib.format.read_array(file, allow_pickle=False)
            return tuple(
                np.lib.format.read_array(file, allow_pickle=False) for _ in range(int(count))
            )

    def is_over(self, name: str) -> bool:
        return not self._shared.holds(_plan_of(name))

    def _name(self, array: NDArray[Any]) -> str:
        """What workers find an array by: the file it is mapped from, or a fresh copy."""
        mapped = self._mapped_from(array)
        if mapped is not None:
            return mapped
        with self._lock:
            known, written = self._stored.get(id(array), (None, 0.0))
        now = time.time()
        if known is not None and now - written < FRESH:
            return known
        name = known or f"cluster/{token_hex(16)}.npy"
        self._shared.write(
            name,
            lambda out: np.lib.format.write_array(
                out, np.ascontiguousarray(array), allow_pickle=False
            ),
        )
        with self._lock:
            self._stored[id(array)] = name, now
        if known is None:
            weakref.finalize(array, self._forget, id(array), name)
        return name

    def _mapped_from(self, array: NDArray[Any]) -> str | None:
        """The shared file that an array is the whole of."""
        base = array.base
        if not isinstance(base, np.memmap) or base.filename is None:
            return None
        whole = (base.dtype, base.shape, base.ctypes.data)
        if (array.dtype, array.shape, array.ctypes.data) != whole:
            return None
        return self._shared.name_of(Path(base.filename))

    def _forget(self, identity: int, name: str) -> None:
        with self._lock:
            self._stored.pop(identity, None)
        self._shared.remove_soon(name)

    def _map(self, file: str, writeable: bool) -> NDArray[Any]:
        # Compiled code knows two types, and finds here the one that it has there. What it wrote
        # would be a copy of its own.
        with self._shared.file(file) as path:
            mapped = np.lib.format.open_memmap(path, mode="c" if writeable else "r")
            self._shared.hold(path, mapped)
        return np.asarray(mapped)


def _folder_of(name: str) -> str:
    if not NAME.fullmatch(name):
        raise ValueError("not the name of a job")
    return f"cluster/{name}"


def _plan_of(name: str) -> str:
    return f"{_folder_of(name)}/plan"


def _part_of(name: str, part: int) -> str:
    return f"{_folder_of(name)}/{int(part)}"
