"""Jobs of compiled kernels that several machines share, as files of ``storage.files.shared``.

    cluster/<random>.npy      an array that kernels read, as long as the service uses the array
    cluster/<random>/plan     a job: its kernel, the names of its arrays, its parts
    cluster/<random>/<n>      the result of part n

Danger: arrays and results are private. They pass between machines only through these files, which
have the modes of the data folder (``storage.records.data_folder``). Messages to workers have only a
job's random name and the number of a part. A sweep removes the files of a crashed service.
"""

import pickle
import re
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from secrets import token_hex
from threading import RLock
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.compiled import KERNELS
from mechanisms.model.executor import Arrays, PartResult
from storage.errors import StoreFailed
from storage.files.mapping import mapped_from
from storage.files.shared import Shared

Kernel = Callable[[Arrays, Any], PartResult]

NAME = re.compile(r"[0-9a-f]{32}")
#: The age in seconds from which the shared copy of an array is written again for a new job. A sweep
#: removes copies of twice this age (``storage.records.retention``). So a job can use a copy for at
#: least this time.
FRESH = 43_200.0


class OtherKernels(RuntimeError):
    """The service of a job has other kernels than this process."""


@dataclass(frozen=True)
class Job:
    """A job as a worker runs it, with its arrays memory-mapped."""

    kernel: Kernel
    arrays: Arrays
    parts: Sequence[Any]


@dataclass(frozen=True)
class _Plan:
    kernels: str
    kernel: Kernel
    #: For each array of a job: the name of its file in the shared folder, and True if kernels may
    #: write to the array.
    names: dict[str, tuple[str, bool]]
    parts: Sequence[Any]


class Scratch:
    """The jobs in a shared folder or store. Methods are safe to call from any thread."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        #: For each array in use, by ``id(array)``: the name of its shared copy, and when the copy
        #: was written, in seconds since 1970.
        self._stored: dict[int, tuple[str, float]] = {}
        # The lock is reentrant, because a finalizer may run in a thread that already holds the
        # lock.
        self._lock = RLock()

    @contextmanager
    def job(self, kernel: Kernel, arrays: Arrays, parts: Sequence[Any]) -> Iterator[str]:
        """The name of a new job. The end of the block removes the job and its results."""
        name = token_hex(16)
        try:
            names = {
                key: (self._name(array), array.flags.writeable) for key, array in arrays.items()
            }
            plan = _Plan(KERNELS, kernel, names, parts)
            self._shared.write(_plan_of(name), lambda out: pickle.dump(plan, out))
            yield name
        finally:
            # A later sweep removes the files that cannot be removed now.
            with suppress(OSError, StoreFailed):
                # The plan is the file that tells workers what to compute. It is removed first: a
                # worker that writes its part of the result later sees that the plan is gone, and
                # removes this part again.
                self._shared.remove(_plan_of(name))
                for file in self._shared.names(_folder_of(name)):
                    self._shared.remove(file)

    def open(self, name: str) -> Job:
        """A job by its name. Raises: FileNotFoundError if it has ended; OtherKernels."""
        # Danger: reading a pickle can run code. Workers may run any code of the service, which
        # writes the plans; the modes of the folder keep others from writing.
        plan: _Plan = pickle.loads(self._shared.read(_plan_of(name)))
        if plan.kernels != KERNELS:
            raise OtherKernels("the worker has other kernels than the service")
        arrays = {key: self._map(*stored) for key, stored in plan.names.items()}
        return Job(plan.kernel, arrays, plan.parts)

    def write(self, name: str, part: int, result: PartResult) -> None:
        """Store the result of a part. Repeated attempts store the same result."""

        def content(out: BinaryIO) -> None:
            np.lib.format.write_array(out, np.array([len(result)]), allow_pickle=False)
            for array in result:
                np.lib.format.write_array(out, np.ascontiguousarray(array), allow_pickle=False)

        self._shared.write(_part_of(name, part), content)
        if self.is_over(name):
            self._shared.remove(_part_of(name, part))

    def read(self, name: str, part: int) -> PartResult:
        """The result of a part. Raises: FileNotFoundError if there is none.

        It reads arrays and never pickles, because workers must not run code in the service.
        """
        with self._shared.file(_part_of(name, part)) as path, path.open("rb") as file:
            (count,) = np.lib.format.read_array(file, allow_pickle=False)
            return tuple(
                np.lib.format.read_array(file, allow_pickle=False) for _ in range(int(count))
            )

    def is_over(self, name: str) -> bool:
        return not self._shared.holds(_plan_of(name))

    def _name(self, array: NDArray[Any]) -> str:
        """The name of a shared file with an array: the file it is mapped from, or a recent copy."""
        mapped = self._mapped_from(array)
        if mapped is not None:
            return mapped
        with self._lock:
            stored, written = self._stored.get(id(array), (None, 0.0))
        now = time.time()
        if stored is not None and now - written < FRESH:
            return stored
        name = stored or f"cluster/{token_hex(16)}.npy"
        self._shared.write(
            name,
            lambda out: np.lib.format.write_array(
                out, np.ascontiguousarray(array), allow_pickle=False
            ),
        )
        with self._lock:
            self._stored[id(array)] = name, now
        if stored is None:
            weakref.finalize(array, self._forget, id(array), name)
        return name

    def _mapped_from(self, array: NDArray[Any]) -> str | None:
        """The name of the shared file whose whole content an array maps; None if there is none."""
        path = mapped_from(array)
        return None if path is None else self._shared.name_of(path)

    def _forget(self, identity: int, name: str) -> None:
        with self._lock:
            self._stored.pop(identity, None)
        self._shared.remove_soon(name)

    def _map(self, file: str, writeable: bool) -> NDArray[Any]:
        # Compiled code distinguishes read-only arrays by type. So an array is read-only in a worker
        # exactly if it is read-only in the service. Mode "c" keeps a kernel's writes in memory and
        # does not change the file.
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
