"""What every reader yields: some consecutive records as Arrow columns, and where they stood."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from storage.ingest.refusals import Place


@dataclass(frozen=True)
class Numbering:
    """Where the i-th record of a batch stood: on line, row or link ``first`` + i.

    ``numbers`` lists the places of records that are not consecutive.
    """

    first: int
    unit: str = "line"
    numbers: Sequence[int] | None = None

    def place(self, record: int, column: str | None = None) -> Place:
        number = self.first + int(record) if self.numbers is None else self.numbers[record]
        return (self.unit, number) if column is None else (self.unit, number, column)


@dataclass(frozen=True)
class Batch:
    """``rows`` records as columns by name, in the order they were written.

    A column is an Arrow array of integers, floats or dictionary-encoded strings.
    """

    columns: Mapping[str, Any]
    rows: int
    numbering: Numbering


def said(place: Place) -> str:
    """A place in words: "line 7, column age"."""
    if len(place) == 1:
        return f"the {place[0]}"
    where = f"{place[0]} {place[1]}"
    return where if len(place) == 2 else f"{where}, column {place[2]}"
