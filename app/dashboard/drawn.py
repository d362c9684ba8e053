"""A released answer as people look at it: pure functions of the stored JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from app.dashboard.charts.heat_map import MOST, heat_map
from app.rendering.svg import svg
from app.rendering.text import text


@dataclass(frozen=True)
class DrawnTree:
    """One tree as a drawing and as indented text."""

    drawing: Markup
    text: str


@dataclass(frozen=True)
class DrawnMetric:
    """The distances of one attribute: a table, and a drawing unless there are too many values."""

    attribute: str
    values: Sequence[str]
    matrix: Sequence[Sequence[float]]
    context: Sequence[str]
    drawing: Markup | None


@dataclass(frozen=True)
class DrawnCentre:
    """One centre: of each attribute the value whose vector is closest."""

    number: int
    values: Mapping[str, str]
    point: Sequence[float]


def trees(answer: Mapping[str, Any]) -> list[DrawnTree]:
    # Both renderings escape what they show: names and labels are the owner's words.
    return [DrawnTree(Markup(svg([tree])), text([tree])) for tree in answer["trees"]]


def metrics(answer: Mapping[str, Any]) -> list[DrawnMetric]:
    return [
        DrawnMetric(
            attribute=attribute,
            values=found["values"],
            matrix=found["matrix"],
            context=found["context"],
            drawing=(
                heat_map(found["values"], found["matrix"])
                if 2 <= len(found["values"]) <= MOST
                else None
            ),
        )
        for attribute, found in answer["distances"].items()
    ]


def centres(answer: Mapping[str, Any]) -> list[DrawnCentre]:
    """Centres live in the encoding: the vectors of the attributes' values one after another."""
    drawn = []
    for number, point in enumerate(answer["centres"], 1):
        values, start = {}, 0
        for attribute in answer["encoding"]["attributes"]:
            width = len(attribute["vectors"][0])
            part, start = point[start : start + width], start + width
            away = [_squared(part, vector) for vector in attribute["vectors"]]
            values[attribute["name"]] = attribute["values"][away.index(min(away))]
        drawn.append(DrawnCentre(number, values, point))
    return drawn


def _squared(left: Sequence[float], right: Sequence[float]) -> float:
    return sum((a - b) ** 2 for a, b in zip(left, right, strict=True))


DRAWINGS = {"tree": trees, "distance": metrics, "clustering": centres}


def drawn(kind: str, answer: Mapping[str, Any]) -> Any:
    """What the page of an answer of this kind shows; None where the answer itself is plain."""
    return DRAWINGS[kind](answer) if kind in DRAWINGS else None
