"""Batches of records, which every reader yields: Arrow columns and the places of the records."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from storage.ingest.refusals import MOST, Place, Refusal


@dataclass(frozen=True)
class Numbering:
    """The place of the i-th record of a batch: line, row or link ``first`` + i.

    ``numbers`` lists the numbers of records that are not consecutive.
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
        """One refusal for each record of the mask ``faulty``, for the first ones only."""
        for record in np.flatnonzero(faulty)[:MOST]:
            yield self.refusal(record, type, message, column)

    def refusal(self, record: int, type: str, message: str, column: str | None = None) -> Refusal:
        """The refusal of one record, whose text names the place too."""
        place = self.place(record, column)
        return place, type, f"{_text(place)}: {message}"


@dataclass(frozen=True)
class Batch:
    """``rows`` records as columns by name, in the order they were written.

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
