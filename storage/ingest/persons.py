"""Keeps at most c rows of each person, and numbers the persons; their ids are not stored.

Danger: which rows of a person are kept must follow from that person's own rows and the key alone.
If the rows of others or the order of the file had a part in it, one person could change the kept
rows of many, and no charge would cover that.

An id becomes 16 bytes of a keyed hash when it is read. Persons are numbered in the order of their
hashes, and rows are chosen by the smallest keyed hashes of their contents. Of a person's equal rows
the second is chosen only after one of each other content, the third after all second ones, and so
on: a person's diagnoses are not crowded out by repetitions of one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from storage.files.growing_array import GrowingArray
from storage.ingest.batches import Batch
from storage.ingest.refusals import WHOLE, Refusal, refuse

#: Bytes of memory that each uploaded row takes while the rows to be kept are chosen.
ROW_BYTES = 64
#: The number of rows that are hashed together, whose contents are in memory as bytes meanwhile.
BLOCK = 1 << 14
_DIGEST = np.dtype([("high", np.uint64), ("low", np.uint64)])

Columns = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Truncation:
    """At most ``most`` rows of each person are kept, chosen by the secret ``key`` of 32 bytes."""

    most: int
    key: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if self.most < 1 or len(self.key) != 32:
            raise ValueError("a person keeps at least one row, chosen by a key of 32 bytes")


class RowSelection(NamedTuple):
    """The kept rows of an upload, ordered by person: their positions, and their persons' numbers.

    ``persons`` ascends from 0 without gaps. Both have the shape (kept rows,).
    """

    rows: NDArray[np.int64]
    persons: NDArray[np.int32]


class PersonCollector:
    """Collects the hashed ids of all rows in a temporary file in ``scratch``.

    ``most_memory``: the bytes within which ``select`` must choose rows.
    """

    def __init__(
        self, column: str, truncation: Truncation, most_memory: int, scratch: Path | None = None
    ) -> None:
        self.column, self._truncation, self._most_memory = column, truncation, most_memory
        self._digests = GrowingArray(scratch, _DIGEST)

    def add(self, batch: Batch) -> Iterator[Refusal]:
        """Adds the ids of a batch. Yields a refusal for every row without an id."""
        import pyarrow as pa

        column = batch.columns[self.column]
        if not pa.types.is_dictionary(column.type):
            column = column.cast(pa.string()).dictionary_encode()
        texts = column.dictionary.to_pylist()
        # An empty text is appended to the ids, and the code of every row without an id refers to
        # it.
        codes = column.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False)
        missing = np.array([not text for text in (*texts, "")])[codes]
        yield from batch.numbering.refusals(
            missing, "missing_value", "a missing id: every row is that of a person", self.column
        )
        digests = b"".join(self._digest(b"person", (text or "").encode(), 16) for text in texts)
        self._digests.append(np.frombuffer(digests + bytes(16), _DIGEST)[codes])

    def select(self, contents: Sequence[NDArray[Any]]) -> RowSelection:
        """The rows that are kept. Raises: InvalidRecords for more rows than the memory allows.

        ``contents``: the columns of the rows, (rows,) each. Their values must not depend on other
        rows, as codes of public levels and numbers do not.
        """
        digests = self._digests.array()
        if len(digests) * ROW_BYTES > self._most_memory:
            refuse(
                WHOLE,
                "memory_limit",
                f"choosing rows of persons takes {ROW_BYTES} bytes of memory for each row, and "
                f"memory_limit is {self._most_memory}",
            )
        order = np.lexsort((digests["low"], digests["high"]))
        ids = digests[order]
        starts = np.ones(len(ids), np.bool_)
        starts[1:] = ids[1:] != ids[:-1]
        persons = np.cumsum(starts, dtype=np.int32) - 1
        has_more = np.bincount(persons)[persons] > self._truncation.most
        stays = ~has_more
        stays[has_more] = self._chosen(order[has_more], ids[has_more], persons[has_more], contents)
        return RowSelection(order[stays], persons[stays])

    def _chosen(
        self,
        rows: NDArray[np.int64],
        ids: NDArray[Any],
        persons: NDArray[np.int32],
        contents: Sequence[NDArray[Any]],
    ) -> NDArray[np.bool_]:
        """Which of these rows are among the first of their persons, by occurrence and by hash.

        The rows of a person stand together, in the order of the file.
        """
        ranks = np.concatenate([np.zeros(0, np.uint64), *self._ranks(rows, ids, contents)])
        # The sort is stable, so equal rows stay in the order of the file.
        order = np.lexsort((ranks, persons))
        # ``persons`` is the person of each row. The sort moves rows only within their own person,
        # so ``persons`` needs no reordering.
        occurrences = _places_among_equal(persons, ranks[order])
        order = order[np.lexsort((ranks[order], occurrences, persons))]
        is_chosen = np.zeros(len(rows), np.bool_)
        is_chosen[order] = _places_among_equal(persons) < self._truncation.most
        return is_chosen

    def _ranks(
        self, rows: NDArray[np.int64], ids: NDArray[Any], contents: Sequence[NDArray[Any]]
    ) -> Iterator[NDArray[np.uint64]]:
        """The hashes of rows, by blocks."""
        for start in range(0, len(rows), BLOCK):
            block = rows[start : start + BLOCK]
            columns = (ids[start : start + BLOCK], *(column[block] for column in contents))
            cells = np.hstack([_as_bytes(column) for column in columns])
            digests = b"".join(self._digest(b"row", row.tobytes(), 8) for row in cells)
            yield np.frombuffer(digests, np.uint64)

    def _digest(self, use: bytes, content: bytes, size: int) -> bytes:
        """The keyed hash of some bytes: BLAKE2b, different for each ``use``."""
        return blake2b(content, digest_size=size, key=self._truncation.key, person=use).digest()


def _places_among_equal(*columns: NDArray[Any]) -> NDArray[np.int64]:
    """The place of each entry among those equal to it in all columns, which stand together."""
    count = len(columns[0])
    starts = np.ones(count, np.bool_)
    starts[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    places = np.arange(count)
    return places - np.maximum.accumulate(np.where(starts, places, 0))


def _as_bytes(column: NDArray[Any]) -> NDArray[np.uint8]:
    """The bytes of each value, (values, bytes of one)."""
    return np.ascontiguousarray(column).view(np.uint8).reshape(len(column), -1)
