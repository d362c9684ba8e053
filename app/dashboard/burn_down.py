"""The chart of the remaining allowance per day: a step line that falls from the limit towards 0.

The SVG has no inline styles or scripts, so the strictest content security policy permits it. The
page shows the same numbers in a table.
"""

from collections.abc import Sequence
from datetime import date

from markupsafe import Markup, escape

from accounting.privacy_loss import format_units
from app.usecases.spending import Day

WIDTH, HEIGHT = 560, 240
LEFT, RIGHT, TOP, BOTTOM = 64, 12, 26, 30


def burn_down_chart(
    days: Sequence[Day], allowance_nano: int, today: date, projected: date | None
) -> Markup:
    """The chart as SVG; ``days`` is not empty, oldest first, and the allowance is above 0."""
    first, last = days[0].day, today
    span = max((last - first).days, 1)
    if projected is not None and 0 < (projected - last).days <= 3 * span:
        last = projected
    whole = max((last - first).days, 1)

    def x(day: date) -> str:
        return f"{LEFT + (WIDTH - LEFT - RIGHT) * (day - first).days / whole:.1f}"

    def y(nano: int) -> str:
        share = nano / allowance_nano
        return f"{HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share:.1f}"

    line = f"M{LEFT} {TOP}"
    for day in days:
        line += f" H{x(day.day)} V{y(day.remaining.epsilon_nano)}"
    line += f" H{x(today)}"
    remaining = days[-1].remaining.epsilon_nano
    parts = [
        f'<path class="axis" d="M{LEFT} {TOP} V{HEIGHT - BOTTOM} H{WIDTH - RIGHT}"/>',
        f'<path class="limit" d="M{LEFT} {TOP} H{WIDTH - RIGHT}"/>',
        _text(LEFT - 8, TOP + 4, format_units(allowance_nano, 9), "end"),
        _text(LEFT + 4, TOP - 8, "allowance (ε)", "start"),
        _text(LEFT - 8, HEIGHT - BOTTOM + 4, "0", "end"),
        _text(LEFT, HEIGHT - 8, first.isoformat(), "start"),
        _text(WIDTH - RIGHT, HEIGHT - 8, last.isoformat(), "end"),
        f'<path class="line" d="{line}"/>',
        f'<circle class="mark" cx="{x(today)}" cy="{y(remaining)}" r="4"/>',
    ]
    if projected is not None and remaining:
        end = min(projected, last)
        # The projection is a straight line. If it ends after the last day of the chart, it is cut
        # at that day, where this much of the allowance remains.
        rest = remaining * (projected - end).days // max((projected - today).days, 1)
        parts.append(
            f'<path class="projected" d="M{x(today)} {y(remaining)} L{x(end)} {y(rest)}"/>'
        )
    title = f"Remaining epsilon from {first} to {today}; the table below has the numbers."
    return Markup(
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(title)}">' + "".join(parts) + "</svg>"
    )


def _text(x: float, y: float, label: str, anchor: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{escape(label)}</text>'
