"""A released naive Bayes model as text and as a drawing: functions of the answer alone.

The drawing has plain shapes without scripts, style sheets and links, as drawings of trees have.
"""

from collections.abc import Mapping
from itertools import accumulate
from typing import Any
from xml.sax.saxutils import escape

from app.queries.parts.sentences import printable
from app.queries.tree.branches import Count, intervals, value_of

Model = Mapping[str, Any]

#: Lengths in the drawing of a naive Bayes model, in SVG units: the height of a line of text; the
#: widths of the column with the values of the attributes, of a column of numbers (one per class),
#: and of the longest bar in it; and the margin.
LINE, LABEL, COLUMN, BAR, PAD = 20, 200, 170, 110, 10
LONGEST_LABEL, LONGEST_CLASS = 26, 20


def prior_numbers(model: Model) -> list[dict[str, Any]]:
    """Returns the count of each class as one released number."""
    columns = model["prior"]
    rows = zip(*columns.values(), strict=True)
    numbers = [dict(zip(columns, row, strict=True)) for row in rows]
    # As on all released numbers, the mark ``suppressed`` is kept only where it is true.
    return [{k: v for k, v in one.items() if k != "suppressed" or v} for one in numbers]


def text(model: Model) -> str:
    """Writes the count of each class, then one line per value of each attribute."""
    lines = [f"all records: {_counts(model, prior_numbers(model))}"]
    for name, one in model["attributes"].items():
        lines.append(printable(name))
        for place, value in enumerate(one["values"]):
            row = [counts[place] for counts in one["counts"]]
            lines.append(f"│   {printable(value)}: {_counts(model, row)}")
    return "\n".join(lines) + "\n"


def svg(model: Model) -> str:
    """Returns one SVG document: a bar for the share of each value in each class."""
    starts = [LABEL + COLUMN * place for place in range(len(model["classes"]))]
    lines = [
        _text(printable(name, LONGEST_CLASS), start, LINE, "#15181d")
        for start, name in zip(starts, model["classes"], strict=True)
    ]
    sizes = [len(one["values"]) + 1 for one in model["attributes"].values()]
    tops = accumulate(sizes, initial=2)
    for top, (name, one) in zip(tops, model["attributes"].items(), strict=False):
        lines.append(_text(printable(name, LONGEST_LABEL), PAD, top * LINE, "#3559b5"))
        shares = [_shares(counts) for counts in one["counts"]]
        for place, value in enumerate(one["values"]):
            y = (top + 1 + place) * LINE
            lines.append(_text(printable(value, LONGEST_LABEL), 2 * PAD, y, "#444b55"))
            for start, of_class, counts in zip(starts, shares, one["counts"], strict=True):
                lines += _bar(start, y, of_class[place], counts[place])
    height = (sum(sizes) + 2) * LINE
    width = LABEL + COLUMN * len(starts) + PAD
    body = "\n".join(lines)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12" role="img">\n'
        "<title>share of each value in each class</title>\n"
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>\n{body}\n</svg>\n'
    )


def _counts(model: Model, row: list[dict[str, Any]]) -> str:
    return printable(intervals(dict(zip(model["classes"], row, strict=True))))


def _shares(counts: list[Count]) -> list[float]:
    """The share of each value in a class; negative and suppressed counts are taken as 0."""
    values = [value_of(count) for count in counts]
    positive = [max(value, 0) if isinstance(value, int | float) else 0 for value in values]
    whole = sum(positive)
    return [value / whole if whole else 0.0 for value in positive]


def _bar(start: int, y: int, share: float, count: Count) -> list[str]:
    width = round(BAR * share, 1)
    number = f"{share:.1%}" if value_of(count) != "suppressed" else "suppressed"
    return [
        f'<rect x="{start}" y="{y - 11}" width="{width:g}" height="14" fill="#9db4ea"/>',
        _text(number, start + width + 4, y, "#15181d"),
    ]


def _text(text: str, x: float, y: int, colour: str) -> str:
    return f'<text x="{x:g}" y="{y}" fill="{colour}">{escape(text)}</text>'
