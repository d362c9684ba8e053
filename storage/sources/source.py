"""What every source of records offers, and the bound on the reads of one source at a time.

Danger: what a source says may come from records. A refusal therefore names a condition of the
source, such as ``QueryCanceled``, and never repeats a text of it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import BoundedSemaphore
from typing import Literal, Protocol

from storage.errors import Busy, SourceFailed

#: The most reads of one source by one process at the same time.
MOST_READS = 2
#: The most bytes of a file of records that are read from a source at a time.
CHUNK = 2**20


class Source(Protocol):
    """A place with tables, whose address only the operator knows."""

    #: The media type of the bytes from ``read``, as an upload of them would declare it.
    media_type: str

    def tables(self) -> list[str]:
        """The names of its tables and views, sorted. Raises: SourceFailed."""

    def read(self, table: str) -> Iterator[bytes]:
        """The content of a table of the listing, in pieces.

        Raises: SourceFailed, also during the iteration, and if the listing has no such table.
        """


class SourceReads:
    """Lists and reads one source, at most ``MOST_READS`` times at once."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._free = BoundedSemaphore(MOST_READS)

    @property
    def media_type(self) -> str:
        return self._source.media_type

    def tables(self) -> list[str]:
        """As ``Source.tables``. Raises: Busy while the source is read as often as it may be."""
        with self._slot():
            return self._source.tables()

    def read(self, table: str) -> Generator[bytes, None, None]:
        """As ``Source.read``; to be closed. Raises: Busy as ``tables`` does; SourceFailed."""
        with self._slot():
            yield from self._source.read(table)

    @contextmanager
    def _slot(self) -> Iterator[None]:
        if not self._free.acquire(blocking=False):
            raise Busy("the source is being read by others")
        try:
            yield
        finally:
            self._free.release()


@dataclass(frozen=True)
class NamedSource:
    """One source of the operator's file, and the names of the owners who may use it."""

    name: str
    kind: Literal["postgresql", "parquet"]
    owners: frozenset[str]
    reads: SourceReads


def checked(table: str, tables: Sequence[str]) -> str:
    """The table, if the listing has it. Raises: SourceFailed."""
    if table not in tables:
        raise SourceFailed("the source has no such table now")
    return table
