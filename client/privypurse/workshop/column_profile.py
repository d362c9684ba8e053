"""What the cells of one column are: counted for the report of the owner, never for the draft."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from datetime import date
from typing import Any

#: The most different cells of a column for which a profile counts how often each occurs.
MOST_DISTINCT = 1_000
#: The most different cells that a report lists, and the most cells that it shows as odd.
MOST_LISTED, MOST_ODD = 50, 5
#: A column is drafted as numeric, or as dates, if at least this share of its filled cells are
#: numbers, or dates. So a few odd cells, or any one record, rarely decide what the draft says.
ENOUGH = 0.95


@dataclass
class ColumnProfile:
    """Counts of the cells of one column, which ``add`` takes one by one."""

    name: str
    rows: int = 0
    empty: int = 0
    numbers: list[float] = field(default_factory=lambda: [math.inf, -math.inf])
    dates: list[str] = field(default_factory=lambda: ["9999-12-31", "0001-01-01"])
    number_count: int = 0
    date_count: int = 0
    #: How often each cell occurs; None once there are more than ``MOST_DISTINCT`` different cells.
    distinct: Counter[str] | None = field(default_factory=Counter)
    odd: dict[str, list[str]] = field(default_factory=lambda: {"numeric": [], "date": []})

    def add(self, cell: str) -> None:
        """Count one cell."""
        self.rows += 1
        if self.distinct is not None:
            self.distinct[cell] += 1
            if len(self.distinct) > MOST_DISTINCT:
                self.distinct = None
        if cell == "":
            self.empty += 1
            return
        self._add_number(cell)
        self._add_date(cell)

    def _add_number(self, cell: str) -> None:
        number = _number(cell)
        if number is None:
            _note(self.odd["numeric"], cell)
            return
        self.number_count += 1
        self.numbers = [min(self.numbers[0], number), max(self.numbers[1], number)]

    def _add_date(self, cell: str) -> None:
        if not _is_date(cell):
            _note(self.odd["date"], cell)
            return
        self.date_count += 1
        self.dates = [min(self.dates[0], cell), max(self.dates[1], cell)]

    @property
    def kind(self) -> str | None:
        """``numeric``, ``date`` or ``categorical``; None if every cell is empty."""
        filled = self.rows - self.empty
        if filled == 0:
            return None
        if self.number_count >= ENOUGH * filled:
            return "numeric"
        return "date" if self.date_count >= ENOUGH * filled else "categorical"

    def report(self) -> dict[str, Any]:
        """What stands in the cells. Danger: these are records."""
        facts: dict[str, Any] = {"name": self.name, "kind": self.kind, "empty_cells": self.empty}
        if self.kind == "numeric":
            facts["smallest"], facts["largest"] = self.numbers
        elif self.kind == "date":
            facts["first"], facts["last"] = self.dates
        if odd := self.odd.get(self.kind or ""):
            facts[f"not_{self.kind}"] = odd
        if self.distinct is None:
            facts["different_cells"] = f"more than {MOST_DISTINCT}"
        else:
            facts["different_cells"] = len(self.distinct)
            if len(self.distinct) <= MOST_LISTED:
                facts["cells"] = dict(self.distinct.most_common())
        return facts


def is_number_or_date(cell: str) -> bool:
    """True for a text that a numeric attribute or a date could have as a cell."""
    return _number(cell) is not None or _is_date(cell)


def _note(cells: list[str], cell: str) -> None:
    if len(cells) < MOST_ODD and cell not in cells:
        cells.append(cell)


def _number(cell: str) -> float | None:
    try:
        number = float(cell)
    except ValueError:
        return None
    return number if math.isfinite(number) and "_" not in cell else None


def _is_date(cell: str) -> bool:
    try:
        return len(cell) == 10 and date.fromisoformat(cell).isoformat() == cell
    except ValueError:
        return False
