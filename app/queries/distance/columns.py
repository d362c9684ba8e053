"""Distances as columns: a row for each pair of values of an attribute."""

from collections.abc import Mapping
from itertools import product
from typing import Any

from app.queries.parts.columns import Columns, of_rows


def columns(answer: Mapping[str, Any]) -> Columns:
    rows = [
        (attribute, one, other, distance)
        for attribute, metric in answer["distances"].items()
        for (one, other), distance in zip(
            product(metric["values"], repeat=2),
            (distance for row in metric["matrix"] for distance in row),
            strict=True,
        )
    ]
    return of_rows(("attribute", "value", "other", "distance"), rows)
