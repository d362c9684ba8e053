"""A statistic as columns: a row for the value, and one for each released part of a mean."""

from collections.abc import Mapping
from typing import Any

from app.queries.parts.columns import NUMBER_ROW, Columns, number_row, of_rows


def columns(answer: Mapping[str, Any]) -> Columns:
    numbers = {"value": answer, **answer.get("parts", {})}
    names = ("number", *NUMBER_ROW, "around", "noise_scale")
    rows = (
        (name, *number_row(one), one.get("around"), one.get("noise_scale"))
        for name, one in numbers.items()
    )
    return of_rows(names, rows)
