"""Files by name that processes on several machines share: a mounted folder, or a store elsewhere.

A name is a path below the data folder, chosen by the server. What is written is there whole or not
at all; what is read is a file of this machine, which may be mapped.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO, Protocol

from storage.files.folders import create_file, make_folder, sync_folder

Content = Callable[[BinaryIO], object]


class Shared(Protocol):
    """Safe to use from any thread. Where files are elsewhere, everything raises StoreFailed."""

    def write(self, name: str, content: Content, *, durable: bool = False) -> None:
        """Write a file, in the place of any that has the name; ``durable``: whatever happens."""
        ...

    def offer(self, path: Path, name: str) -> str:
        """Let others read a file that was written below the data folder; the name they read it by.

        That is ``name`` where it has to be sent somewhere, and where it lies otherwise.
        """
        ...

    def read(self, name: str) -> bytes:
        """A small file as it is now. Raises: FileNotFoundError when there is none."""
        ...

    def file(self, name: str) -> AbstractContextManager[Path]:
        """A file that is never written again, for as long as the block; a mapping outlives that.

        Raises: FileNotFoundError when there is none.
        """
        ...

    def hold(self, path: Path, mapped: object) -> None:
        """Keep what ``file`` gave, or a folder of it, on this machine as long as ``mapped`` lives.

        Said inside the block of ``file``.
        """
        ...

    def holds(self, name: str) -> bool: ...

    def name_of(self, path: Path) -> str | None:
        """The name that others know a file by; None when it is not shared."""
        ...

    def names(self, folder: str) -> dict[str, float]:
        """All files below a folder, and when each was written, in seconds since 1970."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file, or do nothing where there is none."""
        ...

    def remove_soon(self, name: str) -> None:
        """The same without waiting or failing, from wherever: a collected array's last word."""
        ...


class MountedFolder:
    """A data folder that every machine has mounted: nothing is ever copied."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    def write(self, name: str, content: Content, *, durable: bool = False) -> None:
        path = self._root / name
        make_folder(path.parent)
        partial = path.with_name(token_hex(16))
        try:
            with create_file(partial) as out:
                content(out)
                if durable:
                    out.flush()
                    os.fsync(out.fileno())
            os.rename(partial, path)
            if durable:
                sync_folder(path.parent)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise

    def offer(self, path: Path, name: str) -> str:  # noqa: ARG002
        return str(path.resolve().relative_to(self._root))

    def read(self, name: str) -> bytes:
        return (self._root / name).read_bytes()

    @contextmanager
    def file(self, name: str) -> Iterator[Path]:
        path = self._root / name
        if not path.is_file():
            raise FileNotFoundError
        yield path

    def hold(self, path: Path, mapped: object) -> None:
        """It stays until it is removed."""

    def holds(self, name: str) -> bool:
        return (self._root / name).is_file()

    def name_of(self, path: Path) -> str | None:
        path = path.resolve()
        return str(path.relative_to(self._root)) if path.is_relative_to(self._root) else None

    def names(self, folder: str) -> dict[str, float]:
        found = {}
        for path in (self._root / folder).rglob("*"):
            try:
                if path.is_file():
                    found[str(path.relative_to(self._root))] = path.stat().st_mtime
            except FileNotFoundError:  # its own process was faster
                continue
        return found

    def remove(self, name: str) -> None:
        path = self._root / name
        path.unlink(missing_ok=True)
        # The folder of a job goes with the last of its files.
        if name.count("/") > 1:
            with suppress(OSError):
                path.parent.rmdir()

    def remove_soon(self, name: str) -> None:
        with suppress(OSError):
            self.remove(name)
