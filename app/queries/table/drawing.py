"""Prepares the rows of a table for its page; the texts are not escaped here."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Any

from app.queries.table.charts import charts
from app.queries.table.columns import groups_of

#: The most rows of the table that the page shows. Downloads contain all rows.
MOST = 500


@dataclass(frozen=True)
class Row:
    """The labels of one cell, and per column its value, low and high; None if suppressed."""

    labels: tuple[str, ...]
    numbers: tuple[tuple[float | None, float | None, float | None], ...]


@dataclass(frozen=True)
class Sheet:
    """The cells of a table, or one of its margins, as rows; ``more`` rows are not shown."""

    by: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    more: int
    is_measured: bool = False


def draw(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the sheet of all cells, one sheet per margin, and the charts."""
    by: Mapping[str, list[str]] = answer["by"]
    totals = [
        sheet(one["by"], product(*(by[name] for name in one["by"])), one["cells"], one["measured"])
        for one in answer.get("totals", ())
    ]
    cells = sheet(list(by), groups_of(answer), answer["cells"])
    return {"cells": cells, "totals": totals, **charts(answer)}


def sheet(
    by: Sequence[str],
    groups: Iterable[tuple[str, ...]],
    cells: Mapping[str, Any],
    is_measured: bool = False,
) -> Sheet:
    """Returns the rows of columns, each with the labels of its group."""
    columns = [
        list(zip(one["value"], one["low"], one["high"], strict=True)) for one in cells.values()
    ]
    labels = islice(groups, MOST)
    rows = tuple(
        Row(labels=one, numbers=tuple(column[i] for column in columns))
        for i, one in enumerate(labels)
    )
    return Sheet(tuple(by), tuple(cells), rows, len(columns[0]) - len(rows), is_measured)
