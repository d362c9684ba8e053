"""HTML for notebooks: plain elements with escaped text, without scripts or links."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

#: The colour of a matrix cell, visible on light and dark pages. A larger number gets a higher
#: opacity.
SHADE = "rgba(53,89,181,{share:.2f})"


def table(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """A table with a header row."""
    titles = "".join(f'<th scope="col">{escape(str(title))}</th>' for title in head)
    lines = (
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def heat(names: Sequence[str], matrix: Sequence[Sequence[float]]) -> str:
    """A square table of numbers between 0 and 1, shaded by size."""
    titles = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    lines = []
    for name, row in zip(names, matrix, strict=True):
        cells = "".join(
            f'<td style="background:{SHADE.format(share=cell)}">{cell:.2f}</td>' for cell in row
        )
        lines.append(f'<tr><th scope="row">{escape(name)}</th>{cells}</tr>')
    return (
        f"<table><thead><tr><td></td>{titles}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    )


def paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>"
