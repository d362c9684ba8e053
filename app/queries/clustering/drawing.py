"""What the page of an answer shows of its centres."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class DrawnCentre:
    """One centre: of each attribute the level whose vector is closest."""

    number: int
    levels: Mapping[str, str]
    point: Sequence[float]


def draw(answer: Mapping[str, Any]) -> list[DrawnCentre]:
    """Centres live in the encoding: the vectors of the attributes' values one after another."""
    centres = []
    for number, point in enumerate(answer["centres"], 1):
        levels, start = {}, 0
        for attribute in answer["encoding"]["attributes"]:
            width = len(attribute["vectors"][0])
            part, start = point[start : start + width], start + width
            away = [_squared(part, vector) for vector in attribute["vectors"]]
            levels[attribute["name"]] = attribute["values"][away.index(min(away))]
        centres.append(DrawnCentre(number, levels, point))
    return centres


def _squared(left: Sequence[float], right: Sequence[float]) -> float:
    return sum((a - b) ** 2 for a, b in zip(left, right, strict=True))
