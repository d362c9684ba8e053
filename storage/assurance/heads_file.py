"""One file of published heads: appended to and synced before a line counts, read by many.

Processes of one host may share the file. A long file is replaced by a shorter one with the same
content. A file that was deleted, cut or replaced while this process ran is written again, because
what it said is still in memory.
"""

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from storage.assurance.head_lines import HeadsContent, is_start, whole_file
from storage.files.folders import create_file, make_folder, sync

#: A file of heads is compacted once it is longer than ``LONG`` bytes, and also longer than ``EACH``
#: bytes for every account, freeze and verified stream in it.
LONG, EACH = 2**20, 1024


class HeadsFile:
    """One file of heads, and what was read from it so far."""

    def __init__(self, path: Path, long: int = LONG) -> None:
        self.path, self._long = path, long
        self.content = HeadsContent()
        #: The lines that the file has now, if it has lost lines that this process read before;
        #: otherwise None.
        self._rest: HeadsContent | None = None
        self._read_to, self._inode = 0, 0
        self._first = b""

    def refresh(self) -> None:
        """Read the lines that this and other processes have appended since the last call.

        A file that can no longer be read counts as lost. Raises: OSError if it was never read.
        """
        try:
            self._read()
        except (FileNotFoundError, NotADirectoryError):
            if self._read_to:
                self._lost()
        except OSError:
            if self._rest is None and not self._read_to:
                raise
            # An unreadable file counts as lost. Its lines are still in memory, and a failure of one
            # file must not stop the use of the other file of heads.
            self._lost()

    def _read(self) -> None:
        with self.path.open("rb") as file:
            first, stat = file.readline(), os.fstat(file.fileno())
            if first != self._first and is_start(first):
                # Another process has replaced the file by a compacted one with the same content, so
                # it is read from its start.
                self.content, self._rest, self._read_to = HeadsContent(), None, 0
            elif stat.st_size < self._read_to or (self._read_to and stat.st_ino != self._inode):
                self._lost()
            self._first, self._inode = first, stat.st_ino
            file.seek(self._read_to)
            for line in file:
                if not line.endswith(b"\n"):
                    # The line is incomplete, because its writer still writes or has crashed. So no
                    # caller relies on it.
                    break
                self._read_to += len(line)
                if self._rest is None:
                    self.content.take(line)
                else:
                    self._rest.take(line)
        if self._rest is not None:
            # Somebody may have replaced this file of heads by an older copy of it. So if an
            # account's state was read both from the former file and from this one, the later state
            # counts.
            self.content.merge(self._rest)
            self.content.damaged += self._rest.damaged
            self._rest.damaged = []
            if not self._rest.lacking(self.content, 0):
                self._rest = None  # the file has all lines again that it had lost

    def _lost(self) -> None:
        self._rest, self._read_to = HeadsContent(), 0

    def missing(self, whole: HeadsContent, at_us: int) -> list[bytes]:
        """The lines that the file lacks of ``whole``, for ``append``."""
        lacks = self.content if self._rest is None else self._rest
        return [] if lacks is whole else lacks.lacking(whole, at_us)

    def append(self, lines: Sequence[bytes], at_us: int | None = None) -> None:
        """Append lines, which are on disk on return. With ``at_us`` a long file is compacted."""
        if not lines:
            return
        with self._locked() as descriptor:
            size = os.fstat(descriptor).st_size
            # An incomplete line is ended first, so that it cannot damage the next one.
            torn = size and os.pread(descriptor, 1, size - 1) != b"\n"
            _write(descriptor, (b"\n" if torn else b"") + b"".join(lines))
            os.fsync(descriptor)
        self.refresh()
        if at_us is not None and self._is_long(self.path.stat().st_size):
            # A file that an operator has made append-only cannot be replaced. It goes on growing.
            with suppress(PermissionError):
                self._compact(at_us)

    def _is_long(self, size: int) -> bool:
        content = self.content
        lines = len(content.published) + len(content.marks) + len(content.verified_streams)
        return size > max(self._long, EACH * lines)

    def _compact(self, at_us: int) -> None:
        """Replace a long file by one with the last state of each account."""
        with self._locked() as old:
            # Danger: a line that another process appends between this read and the replacement
            # would be lost. The lock on the file keeps other writers out meanwhile.
            self.refresh()
            if not self._is_long(os.fstat(old).st_size):
                return  # another process has already replaced the file by a shorter one
            place = self.path.resolve()
            shorter = place.with_name(place.name + ".new")
            shorter.unlink(missing_ok=True)
            with create_file(shorter) as out:
                os.fchmod(out.fileno(), os.fstat(old).st_mode & 0o777)
                _write(out.fileno(), b"".join(whole_file(self.content, at_us)))
            sync(shorter)
            # The new file is synced before it replaces the old one. So after a crash either the old
            # file or the new one is there, complete.
            os.replace(shorter, place)
            sync(place.parent)
        self.refresh()

    @contextmanager
    def _locked(self) -> Iterator[int]:
        make_folder(self.path.parent)
        fresh = not self.path.exists()
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        while True:
            descriptor = os.open(self.path, flags, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                # Danger: lines written to a file that a compacted one has just replaced would be
                # lost. So the path must still name the locked file.
                if not os.path.samestat(os.fstat(descriptor), os.stat(self.path)):
                    continue
                if fresh:
                    sync(self.path.parent)
                yield descriptor
                return
            finally:
                os.close(descriptor)


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
