"""Lines as SVG, from what a result file holds: nothing is computed but places on the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import isfinite, log10
from typing import Any

from benchmarks.numbers import shown

WIDTH, HEIGHT = 380, 250
LEFT, RIGHT, TOP, BOTTOM = 58, 22, 10, 40
#: Of one character of a label, roughly.
LETTER = 6.2
#: Colours that the colour-blind can tell apart (Okabe and Ito), with dashes beside them.
STYLES = (
    ("#0072b2", ""), ("#d55e00", "6 3"), ("#009e73", "2 2"), ("#cc79a7", "8 3 2 3"),
    ("#e69f00", "4 4"), ("#56b4e9", "1 3"), ("#000000", "10 4"), ("#999933", "5 2 1 2"),
)  # fmt: skip


def axis(values: Sequence[float], logarithmic: bool, low: float, high: float) -> Any:
    """A function from a value to a place between ``low`` and ``high``."""
    usable = [v for v in values if v > 0] if logarithmic else list(values)
    first, last = (log10(f(usable)) if logarithmic else f(usable) for f in (min, max))
    span = last - first or 1.0

    def place(value: float) -> float:
        if logarithmic:
            value = log10(value) if value > 0 else first
        return low + (high - low) * (min(max(value, first), last) - first) / span

    return place


def svg(plot: Mapping[str, Any]) -> str:
    """One panel with its legend below; every mark tells its value when pointed at."""
    names = list(plot["lines"])
    height = HEIGHT + 16 * len(names)
    x = axis(plot["at"], plot["logarithmic"], LEFT, WIDTH - RIGHT)
    y = axis(plot["ticks"], plot["logarithmic_up"], HEIGHT - BOTTOM, TOP)
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(plot["title"])}">'
    ]
    parts += [
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(tick):.1f}" '
        f'y2="{y(tick):.1f}"/><text x="{LEFT - 4}" y="{y(tick) + 4:.1f}" text-anchor="end">'
        f"{shown(tick)}</text>"
        for tick in plot["ticks"]
    ]
    end = 0.0
    for value in plot["at"]:
        # Labels that would touch the one before are left out.
        label, at = shown(value), x(value)
        half = len(label) * LETTER / 2
        if at - half > end and at + half < WIDTH:
            end = at + half + LETTER
            parts.append(
                f'<text x="{at:.1f}" y="{HEIGHT - BOTTOM + 14}" text-anchor="middle">{label}</text>'
            )
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(
        f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">{escape(plot["across"])}</text>'
    )
    for number, name in enumerate(names):
        colour, dash = STYLES[number % len(STYLES)]
        line = [
            (x(at), value, half)
            for at, (value, half) in zip(plot["at"], plot["lines"][name], strict=True)
            if value is not None and isfinite(value)
        ]
        points = " ".join(f"{px:.1f},{y(value):.1f}" for px, value, _ in line)
        stroke = f'stroke="{colour}" stroke-width="1.6" stroke-dasharray="{dash}"'
        parts.append(f'<polyline points="{points}" fill="none" {stroke}/>')
        for px, value, half in line if len(line) <= 60 else []:
            if half:
                parts.append(
                    f'<line stroke="{colour}" x1="{px:.1f}" x2="{px:.1f}" '
                    f'y1="{y(value - half):.1f}" y2="{y(value + half):.1f}"/>'
                )
            parts.append(
                f'<circle cx="{px:.1f}" cy="{y(value):.1f}" r="2.4" fill="{colour}">'
                f"<title>{escape(name)}: {shown((value, half))}</title></circle>"
            )
        at = HEIGHT + 16 * number
        parts.append(
            f'<line x1="{LEFT}" x2="{LEFT + 30}" y1="{at}" y2="{at}" {stroke}/>'
            f'<text x="{LEFT + 38}" y="{at + 4}">{escape(name)}</text>'
        )
    return "".join([*parts, "</svg>"])
