"""Draws the noisy values of selected candidates: a bar for each, with its interval.

The texts are not escaped here: ``answer.html`` escapes them when it writes the shapes. Coordinates
are in the unit of the drawing. The drawing is a function of the answer alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from app.queries.parts.sentences import printable

#: The most candidates that the chart shows; the table has all.
MOST = 60
LABEL, WIDTH, ROW, GAP = 150.0, 640.0, 20.0, 5.0
LONGEST = 20


@dataclass(frozen=True)
class Bar:
    """One candidate: the bar of its value and the two ends of its interval, in x coordinates."""

    y: float
    label: str
    start: float
    end: float
    low: float
    high: float
    title: str

    @property
    def error(self) -> str:
        """The interval as the path of an error bar: a line with a cap at either end."""
        top, middle, bottom = (self.y + share * (ROW - GAP) for share in (0.2, 0.5, 0.8))
        caps = (f"M{x:.1f} {top:.1f}V{bottom:.1f}" for x in (self.low, self.high))
        return f"{''.join(caps)}M{self.low:.1f} {middle:.1f}H{self.high:.1f}"


@dataclass(frozen=True)
class BarChart:
    """The bars in the order of the answer; ``zero`` is the x coordinate of the value 0."""

    width: ClassVar[float] = WIDTH
    row: ClassVar[float] = ROW - GAP
    height: float
    zero: float
    bars: tuple[Bar, ...]


def draw(answer: Mapping[str, Any]) -> BarChart | None:
    """Returns the chart of the values that are shown, or None for an answer without values."""
    numbers = answer.get("values")
    if numbers is None:
        return None
    rows = list(
        zip(answer["selected"], *(numbers[n] for n in ("value", "low", "high")), strict=True)
    )
    rows = [row for row in rows if row[1] is not None][:MOST]
    lowest: float = min(0.0, 0.0, *(low for _, _, low, _ in rows))
    highest: float = max(0.0, 0.0, *(high for _, _, _, high in rows))
    unit = (WIDTH - LABEL - 2 * GAP) / ((highest - lowest) or 1.0)

    def x(value: float) -> float:
        return LABEL + GAP + (value - lowest) * unit

    bars = []
    for i, (one, value, low, high) in enumerate(rows):
        title = f"{printable(str(one))}: {value:g}, between {low:g} and {high:g}"
        start, end = sorted((x(0), x(value)))
        name = printable(str(one), LONGEST)
        bars.append(Bar(i * ROW + GAP, name, start, end, x(low), x(high), title))
    return BarChart(len(rows) * ROW + 2 * GAP, x(0), tuple(bars))
