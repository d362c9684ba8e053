"""Released trees as people read them: text, Graphviz and SVG; pure functions of the nested JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.rendering.branches import Tree
from app.rendering.dot import dot
from app.rendering.svg import svg
from app.rendering.text import text


@dataclass(frozen=True)
class Format:
    """A media type and what writes it."""

    media_type: str
    write: Callable[[list[Tree]], str]


FORMATS: dict[str, Format] = {
    "text": Format("text/plain; charset=utf-8", text),
    "dot": Format("text/vnd.graphviz; charset=utf-8", dot),
    "svg": Format("image/svg+xml", svg),
}

__all__ = ["FORMATS", "Format", "Tree"]
