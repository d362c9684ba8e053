"""Batches of records, which every reader yields: Arrow columns, and where each record stands."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from storage.ingest.refusals import MOST, Place, Refusal


@dataclass(frozen=True)
class Numbering:
    """Numbers the records of a batch: record i is the line, row or link ``first`` + i.

    ``unit`` is the word for it. If the numbers are not consecutive, ``numbers`` lists them.
    """

    first: int
    unit: str = "line"
    numbers: Sequence[int] | None = None

    def place(self, record: int, column: str | None = None) -> Place:
        number = self.first + int(record) if self.numbers is None else self.numbers[record]
        return (self.unit, number) if column is None else (self.unit, number, column)

    def refusals(
        self, faulty: Any, type: str, message: str, column: str | None = None
    ) -> Iterator[Refusal]:
        """One refusal for each record of the mask ``faulty``, up to the ``MOST`` first ones."""
        for record in np.flatnonzero(faulty)[:MOST]:
            yield self.refusal(record, type, message, column)

    def refusal(self, record: int, type: str, message: str, column: str | None = None) -> Refusal:
        """The refusal of one record of the batch; its text also names the record's place."""
        place = self.place(record, column)
        return place, type, f"{_text(place)}: {message}"


@dataclass(frozen=True)
class Batch:
    """``rows`` records as columns by name, in the order of the file.

    A column is an Arrow array of integers, floats or dictionary-encoded strings.
    """

    columns: Mapping[str, Any]
    rows: int
    numbering: Numbering


def _text(place: Place) -> str:
    """A place in words, such as "line 7, column age"."""
    if len(place) == 1:
        return f"the {place[0]}"
    where = f"{place[0]} {place[1]}"
    return where if len(place) == 2 else f"{where}, column {place[2]}"
