"""Faults of a machine, injected one step after another: no descriptor, full disk."""

from __future__ import annotations

import errno
import os
import resource
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

#: The calls of the operating system by which this project creates, opens and writes files.
CALLS = ("open", "fsync", "rename", "mkdir", "posix_fallocate", "link")


@contextmanager
def few_descriptors(free: int) -> Iterator[None]:
    """This process can open ``free`` more descriptors, and none besides."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with ExitStack() as closing:
        used = {int(name) for name in os.listdir("/proc/self/fd")}
        highest = max(used) + 1
        # The operating system limits the highest number of a descriptor, not how many are open. So
        # the free numbers below the highest open one are taken first.
        source = os.open("/dev/null", os.O_RDONLY)
        closing.callback(os.close, source)
        for _ in range(highest - len(used)):
            closing.callback(os.close, os.dup(source))
        top = max(int(name) for name in os.listdir("/proc/self/fd")) + 1
        resource.setrlimit(resource.RLIMIT_NOFILE, (top + free, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class FailingCalls:
    """Counts calls that touch files below a folder. The call ``failing``, from 0 on, fails."""

    def __init__(self, folder: Path, number: int) -> None:
        self._folder, self._number = str(folder.resolve()), number
        self.failing: int | None = None
        self.count = 0

    def wrap(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def checked(*args: Any, **kwargs: Any) -> Any:
            if self._concerns(args[0]):
                self.count += 1
                if self.failing is not None and self.count > self.failing:
                    raise OSError(self._number, os.strerror(self._number))
            return call(*args, **kwargs)

        return checked

    def _concerns(self, target: Any) -> bool:
        if isinstance(target, int):
            path = os.readlink(f"/proc/self/fd/{target}")
            return path.startswith(self._folder) and not stat.S_ISFIFO(os.fstat(target).st_mode)
        return str(target).startswith(self._folder)


@contextmanager
def failing_calls(folder: Path, number: int = errno.ENOSPC) -> Iterator[FailingCalls]:
    """Python's calls for files below ``folder`` fail with ``number`` from a chosen one on."""
    calls = FailingCalls(folder, number)
    with ExitStack() as patches:
        for name in CALLS:
            patches.enter_context(patch.object(os, name, calls.wrap(getattr(os, name))))
        yield calls
