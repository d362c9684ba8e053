"""What the page of an answer shows of a metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.queries.distance.heat_map import MOST, HeatMap, heat_map


@dataclass(frozen=True)
class DrawnMetric:
    """The distances of one attribute: a table, and a drawing unless there are too many values."""

    attribute: str
    levels: Sequence[str]
    matrix: Sequence[Sequence[float]]
    context: Sequence[str]
    heat_map: HeatMap | None


def draw(answer: Mapping[str, Any]) -> list[DrawnMetric]:
    return [
        DrawnMetric(
            attribute=attribute,
            levels=metric["values"],
            matrix=metric["matrix"],
            context=metric["context"],
            heat_map=(
                heat_map(metric["values"], metric["matrix"])
                if 2 <= len(metric["values"]) <= MOST
                else None
            ),
        )
        for attribute, metric in answer["distances"].items()
    ]
