"""Draws released numbers as bars with error bars; plain SVG shapes.

The texts are not escaped here: the macro of ``bars.html`` escapes them when it writes the shapes.
Coordinates are in the unit of the drawing. The chart is a function of the answer alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from app.queries.parts.sentences import printable

LONGEST = 22


class Interval(NamedTuple):
    """A released number with its name and its interval."""

    name: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Bar:
    """One number: its bar, and the two ends of its error bar, in x coordinates."""

    y: float
    label: str
    start: float
    end: float
    low: float
    high: float
    title: str


@dataclass(frozen=True)
class BarChart:
    """Numbers as bars from the top; ``zero`` is the x coordinate of the value 0."""

    width: ClassVar[float] = 640.0
    #: Lengths in SVG units: the width of the labels, the distance between two bars, the gap around
    #: a bar, and half of an error bar's cap.
    label: ClassVar[float] = 170.0
    pitch: ClassVar[float] = 22.0
    gap: ClassVar[float] = 6.0
    cap: ClassVar[float] = 4.0
    #: The height of one bar, in SVG units.
    row: ClassVar[float] = pitch - gap
    name: str
    zero: float
    bars: tuple[Bar, ...]

    @property
    def height(self) -> float:
        return len(self.bars) * self.pitch + 2 * self.gap


def bar_chart(name: str, intervals: Sequence[Interval]) -> BarChart:
    """Returns the chart of all intervals, in their order."""
    lowest = min([0.0, *(min(one[1:]) for one in intervals)])
    highest = max([0.0, *(max(one[1:]) for one in intervals)])
    margin = BarChart.label + BarChart.gap
    unit = (BarChart.width - margin - BarChart.gap) / ((highest - lowest) or 1.0)

    def x(value: float) -> float:
        return margin + (value - lowest) * unit

    def bar(place: int, one: Interval) -> Bar:
        start, end = sorted((x(0), x(one.value)))
        text = printable(one.name)
        return Bar(
            y=BarChart.gap + place * BarChart.pitch,
            label=printable(text, LONGEST),
            start=start,
            end=end,
            low=x(one.low),
            high=x(one.high),
            title=f"{text}: {one.value:g}, between {one.low:g} and {one.high:g}",
        )

    return BarChart(name, x(0), tuple(bar(*one) for one in enumerate(intervals)))
