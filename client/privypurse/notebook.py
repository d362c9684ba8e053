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


#: The sizes of a bar chart, in the units of its drawing.
_LABEL, _WIDTH, _ROW = 150, 320, 18


def bars(names: Sequence[str], intervals: Sequence[tuple[float, float, float]]) -> str:
    """A drawing of a bar per name, from 0 to the value, with its error bar from low to high.

    ``intervals``: (value, low, high) of finite numbers, one per name.
    """
    ends = [0.0, *(end for interval in intervals for end in interval)]
    least, span = min(ends), (max(ends) - min(ends)) or 1.0

    def across(number: float) -> float:
        return round(_LABEL + _WIDTH * (number - least) / span, 1)

    lines = []
    for place, (name, (value, low, high)) in enumerate(zip(names, intervals, strict=True)):
        top, middle = place * _ROW, place * _ROW + _ROW / 2
        start, end = sorted((across(0.0), across(value)))
        lines.append(
            f"<g><title>{escape(name)}: {value:g} ({low:g} … {high:g})</title>"
            f'<text x="0" y="{middle + 4}" font-size="12">{escape(name[:20])}</text>'
            f'<rect x="{start}" y="{top + 3}" width="{end - start:.1f}" height="{_ROW - 6}" '
            'fill="#0072b2" fill-opacity="0.5"/>'
            f'<path d="M{across(low)} {middle}H{across(high)}M{across(low)} {top + 4}v{_ROW - 8}'
            f'M{across(high)} {top + 4}v{_ROW - 8}" stroke="currentColor"/></g>'
        )
    width, height = _LABEL + _WIDTH + 8, max(len(lines), 1) * _ROW
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" role="img" fill="currentColor" '
        f'aria-label="Values with error bars">{"".join(lines)}</svg>'
    )


def paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>"
