"""The text of a cell as CSV has it, for values of Parquet files and of databases."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any


def cell_text(value: Any) -> str:
    """The text that an upload would read for a value; an absent value is the empty text.

    Raises: ValueError for a value that is no text, number, truth value or date.
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, str | int | float):
        return str(value)
    # ``datetime`` is a subclass of ``date``; its text contains the time.
    if isinstance(value, date):
        return value.isoformat()
    raise ValueError(f"a cell is a {type(value).__name__}: choose columns of texts, numbers, dates")
