"""Charts of a table: bars of each column, and a heat map with a legend; plain SVG shapes.

The texts are not escaped here: ``answer.html`` escapes them when it writes the shapes. Coordinates
are in the unit of the drawing. The shapes are a function of the answer alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Any

from app.queries.parts.bars import LONGEST, BarChart, Interval, bar_chart
from app.queries.parts.sentences import printable
from app.queries.table.columns import groups_of

#: The most bars of one chart, and the most rows or columns of a heat map. Further numbers are in
#: the table of the page alone.
MOST_BARS, MOST_SIDE = 40, 24
#: At most this many columns of the answer are drawn.
MOST_CHARTS = 4
WIDTH, LABEL, ROW, GAP = BarChart.width, BarChart.label, BarChart.pitch, BarChart.gap
#: The number of shades in the legend of a heat map.
SHADES = 5

#: One column of the answer: lists of values and interval ends. None stands for a suppressed number.
Numbers = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Square:
    """One cell of a heat map, or one step of its legend."""

    x: float
    y: float
    opacity: float
    title: str
    text: str


@dataclass(frozen=True)
class HeatMap:
    """A two-way table as squares: darker for larger values."""

    name: str
    width: float
    height: float
    side: float
    #: For each row, the y coordinate of its label and the text; for each column, the x coordinate
    #: and the text.
    rows: tuple[tuple[float, str], ...]
    columns: tuple[tuple[float, str], ...]
    squares: tuple[Square, ...]
    legend: tuple[Square, ...]


def bar_charts(groups: Sequence[tuple[str, ...]], cells: Mapping[str, Numbers]) -> list[BarChart]:
    """Returns a chart of each of the first columns, with the first cells as bars."""
    return [column_bars(name, groups, one) for name, one in islice(cells.items(), MOST_CHARTS)]


def column_bars(name: str, groups: Sequence[tuple[str, ...]], column: Numbers) -> BarChart:
    """Returns one column as bars with error bars, without suppressed cells."""
    numbers = zip(column["value"], column["low"], column["high"], strict=True)
    intervals = (
        Interval(", ".join(labels) or "all", *row)
        for labels, row in zip(groups, numbers, strict=True)
        if None not in row
    )
    return bar_chart(name, list(islice(intervals, MOST_BARS)))


def heat_maps(by: Mapping[str, Sequence[str]], cells: Mapping[str, Numbers]) -> list[HeatMap]:
    """Returns a heat map of each of the first columns of a small two-way table, else nothing."""
    sizes = [len(labels) for labels in by.values()]
    if len(sizes) != 2 or not all(2 <= size <= MOST_SIDE for size in sizes):
        return []
    return [heat_map(name, by, column) for name, column in islice(cells.items(), MOST_CHARTS)]


def heat_map(name: str, by: Mapping[str, Sequence[str]], column: Numbers) -> HeatMap:
    """Returns one column of a two-way table as squares."""
    rows, columns = by.values()
    values = column["value"]
    present: list[float] = [value for value in values if value is not None]
    lowest, highest = min(present, default=0.0), max(present, default=0.0)
    side = min(56.0, (WIDTH - LABEL) / len(columns))
    top = ROW

    def opacity(value: float | None) -> float:
        if value is None:
            return 0.0
        # The opacity is at most 0.45, so that the text on the darkest square keeps its contrast.
        return 0.05 + 0.4 * (value - lowest) / ((highest - lowest) or 1.0)

    squares = tuple(
        Square(
            x=LABEL + (i % len(columns)) * side,
            y=top + (i // len(columns)) * side,
            opacity=opacity(value),
            title=f"{printable(row)}, {printable(other)}: {_text(value, 'g')}",
            text=_text(value, ".3g") if side >= 44 else "",
        )
        for i, ((row, other), value) in enumerate(zip(product(rows, columns), values, strict=True))
    )
    bottom = top + len(rows) * side + GAP
    steps = [lowest + (highest - lowest) * i / (SHADES - 1) for i in range(SHADES)]
    legend = tuple(
        Square(LABEL + i * 70, bottom, opacity(value), "", f"{value:.3g}")
        for i, value in enumerate(steps)
    )
    return HeatMap(
        name=name,
        width=max(WIDTH, LABEL + len(columns) * side),
        height=bottom + ROW + GAP,
        side=side,
        rows=tuple(
            (top + (i + 0.5) * side + 4, printable(row, LONGEST)) for i, row in enumerate(rows)
        ),
        columns=tuple(
            (LABEL + (i + 0.5) * side, printable(one, max(3, int(side / 7))))
            for i, one in enumerate(columns)
        ),
        squares=squares,
        legend=legend,
    )


def _text(value: float | None, form: str) -> str:
    return "suppressed" if value is None else format(value, form)


def charts(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the charts of an answer: heat maps of two-way tables, bars of all."""
    by, cells = answer["by"], answer["cells"]
    # If an attribute has open values, the answer has only groups whose noisy count is above a
    # threshold. They do not fill a grid of rows and columns, so there is no heat map.
    maps = [] if answer.get("open") else heat_maps(by, cells)
    return {"bars": bar_charts(groups_of(answer), cells), "heat_maps": maps}
