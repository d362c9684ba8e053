"""Files that processes on several machines share by name: in a mounted folder or an object store.

A name is a path below the data folder, chosen by the server. No reader sees a part of a file that
is being written. A file is read as a local file, which may be memory-mapped.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

from storage.files.folders import create_file, make_folder, sync

Content = Callable[[BinaryIO], object]


class Shared:
    """The files below a folder that every machine mounts. Safe to use from any thread.

    ``storage.s3.cache.CachedStore`` derives from this class, for files in an object store. There
    every method may also raise StoreFailed.
    """

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    def write(self, name: str, content: Content, *, durable: bool = False) -> None:
        """Write or replace a file by calling ``content`` with it.

        ``durable``: the file survives a power cut after this returns.
        """
        path = self._root / name
        make_folder(path.parent)
        partial = path.with_name(token_hex(16))
        try:
            with create_file(partial) as out:
                content(out)
            if durable:
                sync(partial)
            os.rename(partial, path)
            if durable:
                sync(path.parent)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise

    def write_new(self, name: str, content: bytes) -> None:
        """Write a small file durably, unless it exists. Of concurrent writers, one succeeds."""
        path = self._root / name
        partial = path.with_name(f".{token_hex(16)}")
        try:
            with create_file(partial) as out:
                out.write(content)
            sync(partial)
            with suppress(FileExistsError):
                os.link(partial, path)
            sync(path.parent)
        finally:
            partial.unlink(missing_ok=True)

    def offer(self, path: Path, name: str) -> str:  # noqa: ARG002
        """Share a file below the data folder. Returns the name by which others read it.

        An object store gets a copy called ``name``; in a mounted folder the file keeps its path.
        """
        return str(path.resolve().relative_to(self._root))

    def read(self, name: str) -> bytes:
        """The content of a small file. Raises: FileNotFoundError."""
        return (self._root / name).read_bytes()

    @contextmanager
    def file(self, name: str) -> Iterator[Path]:
        """The path of a file that is never written again, valid within the block.

        A mapping of the file outlives the block. Raises: FileNotFoundError.
        """
        path = self._root / name
        if not path.is_file():
            raise FileNotFoundError
        yield path

    def hold(self, path: Path, mapped: object) -> None:
        """Keep a path of ``file``, or a folder of such paths, on this disk while ``mapped`` lives.

        Must be called inside the block of ``file``. Does nothing here: no file is evicted.
        """

    def holds(self, name: str) -> bool:
        return (self._root / name).is_file()

    def name_of(self, path: Path) -> str | None:
        """The shared name of a file; None if it is not shared."""
        path = path.resolve()
        return str(path.relative_to(self._root)) if path.is_relative_to(self._root) else None

    def names(self, folder: str) -> dict[str, float]:
        """All files below a folder, each with the time of its writing in seconds since 1970."""
        written = {}
        for path in (self._root / folder).rglob("*"):
            with suppress(FileNotFoundError):  # another process may remove the file meanwhile
                if path.is_file():
                    written[str(path.relative_to(self._root))] = path.stat().st_mtime
        return written

    def remove(self, name: str) -> None:
        """Remove a file, or do nothing if it does not exist."""
        path = self._root / name
        path.unlink(missing_ok=True)
        # The folder of a job is removed with its last file.
        if name.count("/") > 1:
            with suppress(OSError):
                path.parent.rmdir()

    def remove_soon(self, name: str) -> None:
        """Like ``remove``, but never blocks and never raises. Called from finalizers."""
        with suppress(OSError):
            self.remove(name)
