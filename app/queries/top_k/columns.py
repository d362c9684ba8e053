"""Selected candidates as columns, with their values and intervals where these are released."""

from collections.abc import Mapping
from typing import Any

from app.queries.parts.columns import Columns, of_rows


def columns(answer: Mapping[str, Any]) -> Columns:
    selected = answer["selected"]
    ordered = answer.get("ordered", True)
    places = range(1, len(selected) + 1) if ordered else [None] * len(selected)
    numbers = answer.get("values", {})
    members = ("value", "low", "high", "suppressed")
    ends = (numbers.get(name, [None] * len(selected)) for name in members)
    names = ("selected", "place", *members)
    return of_rows(names, zip(selected, places, *ends, strict=True))
