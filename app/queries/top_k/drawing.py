"""Draws the noisy values of selected candidates: a bar for each, with its interval."""

from collections.abc import Mapping
from typing import Any

from app.queries.parts.bars import BarChart, Interval, bar_chart

#: The most candidates that the chart shows. The table of the answer lists all.
MOST = 60


def draw(answer: Mapping[str, Any]) -> BarChart | None:
    """Returns the chart of the values that are shown, or None for an answer without values."""
    numbers = answer.get("values")
    if numbers is None:
        return None
    columns = (numbers[name] for name in ("value", "low", "high"))
    rows = zip(map(str, answer["selected"]), *columns, strict=True)
    intervals = [Interval(*row) for row in rows if row[1] is not None]
    return bar_chart("the noisy values of the selected", intervals[:MOST])
