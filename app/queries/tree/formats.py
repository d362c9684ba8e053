"""Trees as people read them: text, Graphviz and SVG; pure functions of the nested JSON."""

from __future__ import annotations

from app.queries.parts.kind import Format
from app.queries.tree.dot import dot
from app.queries.tree.svg import svg
from app.queries.tree.text import text

FORMATS: dict[str, Format] = {
    "text": Format("text/plain; charset=utf-8", lambda answer: text(answer["trees"])),
    "dot": Format("text/vnd.graphviz; charset=utf-8", lambda answer: dot(answer["trees"])),
    "svg": Format("image/svg+xml", lambda answer: svg(answer["trees"])),
}
