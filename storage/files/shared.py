"""Files that processes on several machines share by name: in a mounted folder or an object store.

A name is a path below the data folder, chosen by the server. A file is written whole or not at all,
and is read as a file of this machine, which may be mapped.
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
    """Safe to use from any thread. With an object store, every method may raise StoreFailed."""

    def write(self, name: str, content: Content, *, durable: bool = False) -> None:
        """Write or replace a file; ``durable``: it survives a power cut."""
        ...

    def offer(self, path: Path, name: str) -> str:
        """Share a file below the data folder. Returns the name by which others read it.

        An object store gets a copy called ``name``; in a mounted folder the file keeps its path.
        """
        ...

    def read(self, name: str) -> bytes:
        """The content of a small file. Raises: FileNotFoundError."""
        ...

    def file(self, name: str) -> AbstractContextManager[Path]:
        """The path of a file that is never written again, valid within the block.

        A mapping of the file outlives the block. Raises: FileNotFoundError.
        """
        ...

    def hold(self, path: Path, mapped: object) -> None:
        """Pin a path of ``file``, or a folder of such paths, while ``mapped`` is alive.

        Must be called inside the block of ``file``.
        """
        ...

    def holds(self, name: str) -> bool: ...

    def name_of(self, path: Path) -> str | None:
        """The shared name of a file; None if it is not shared."""
        ...

    def names(self, folder: str) -> dict[str, float]:
        """All files below a folder, each with the time of its writing in seconds since 1970."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file, or do nothing if there is none."""
        ...

    def remove_soon(self, name: str) -> None:
        """Like ``remove``, but never blocks and never raises. Called from finalizers."""
        ...


class MountedFolder:
    """A data folder that every machine mounts: nothing is copied."""

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
        """Does nothing: a file stays until it is removed."""

    def holds(self, name: str) -> bool:
        return (self._root / name).is_file()

    def name_of(self, path: Path) -> str | None:
        path = path.resolve()
        return str(path.relative_to(self._root)) if path.is_relative_to(self._root) else None

    def names(self, folder: str) -> dict[str, float]:
        written = {}
        for path in (self._root / folder).rglob("*"):
            try:
                if path.is_file():
                    written[str(path.relative_to(self._root))] = path.stat().st_mtime
            except FileNotFoundError:  # its own process removed it meanwhile
                continue
        return written

    def remove(self, name: str) -> None:
        path = self._root / name
        path.unlink(missing_ok=True)
        # The folder of a job is removed with its last file.
        if name.count("/") > 1:
            with suppress(OSError):
                path.parent.rmdir()

    def remove_soon(self, name: str) -> None:
        with suppress(OSError):
            self.remove(name)
