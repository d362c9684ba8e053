"""What the page of an answer shows of its trees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.queries.tree.svg import svg
from app.queries.tree.text import text


@dataclass(frozen=True)
class DrawnTree:
    """One tree as a drawing and as indented text."""

    #: SVG in which every name and label is escaped, so that a page may include it as it is.
    svg: str
    text: str


def draw(answer: Mapping[str, Any]) -> list[DrawnTree]:
    return [DrawnTree(svg([tree]), text([tree])) for tree in answer["trees"]]
