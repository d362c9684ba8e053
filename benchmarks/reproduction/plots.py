"""Where the lines, marks and labels of a plot stand on the page; the template draws them."""

from collections.abc import Callable, Mapping, Sequence
from math import isfinite, log10
from typing import Any

from benchmarks.numbers import formatted

WIDTH, HEIGHT = 380, 250
LEFT, RIGHT, TOP, BOTTOM = 58, 22, 10, 40
#: The approximate width of one character of an axis label.
LETTER = 6.2
#: Line colours that colour-blind people can tell apart, each with its dash pattern. The last is of
#: Paul Tol's muted palette, the others are of Okabe and Ito's.
STYLES = (
    ("#0072b2", ""), ("#d55e00", "6 3"), ("#009e73", "2 2"), ("#cc79a7", "8 3 2 3"),
    ("#e69f00", "4 4"), ("#56b4e9", "1 3"), ("#000000", "10 4"), ("#999933", "5 2 1 2"),
)  # fmt: skip


def axis(
    values: Sequence[float], logarithmic: bool, low: float, high: float
) -> Callable[[float], float]:
    """A function from a value to a place between ``low`` and ``high``."""
    usable = [v for v in values if v > 0] if logarithmic else list(values)
    first, last = (log10(f(usable)) if logarithmic else f(usable) for f in (min, max))
    span = last - first or 1.0

    def place(value: float) -> float:
        if logarithmic:
            value = log10(value) if value > 0 else first
        return round(low + (high - low) * (min(max(value, first), last) - first) / span, 1)

    return place


def geometry(plot: Mapping[str, Any]) -> dict[str, Any]:
    """One panel with its legend below."""
    x = axis(plot["at"], plot["logarithmic"], LEFT, WIDTH - RIGHT)
    y = axis(plot["ticks"], plot["logarithmic_up"], HEIGHT - BOTTOM, TOP)
    lines = []
    for number, (name, values) in enumerate(plot["lines"].items()):
        colour, dash = STYLES[number % len(STYLES)]
        marks = [
            (x(at), y(value), half and (y(value - half), y(value + half)), (value, half))
            for at, (value, half) in zip(plot["at"], values, strict=True)
            if value is not None and isfinite(value)
        ]
        key = HEIGHT + 16 * number
        lines.append({"name": name, "colour": colour, "dash": dash, "marks": marks, "key": key})
    labels, end = [], 0.0
    for value in plot["at"]:
        # An axis label that would touch the one before it is left out.
        at, half = x(value), len(formatted(value)) * LETTER / 2
        if at - half > end and at + half < WIDTH:
            end = at + half + LETTER
            labels.append((at, value))
    return {
        "size": (WIDTH, HEIGHT + 16 * len(lines)),
        "frame": (LEFT, WIDTH - RIGHT, HEIGHT - BOTTOM + 14, HEIGHT - 8),
        "grid": [(y(tick), tick) for tick in plot["ticks"]],
        "labels": labels,
        "lines": lines,
    }
