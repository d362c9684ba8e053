"""The chart of what was left of an account: a step line that falls from the limit towards 0.

The SVG has no inline styles or scripts, so the strictest content security policy permits it. Each
step has a title, which browsers show under the pointer. The page has the same numbers in a table.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from markupsafe import Markup, escape

from app.usecases.accounts.spending import BurnDown

WIDTH, HEIGHT = 560, 240
LEFT, RIGHT, TOP, BOTTOM = 96, 16, 26, 30
#: The possible distances between ticks on the axis of time. The chart uses the smallest that gives
#: at most ``TICKS`` ticks.
STEPS = [
    timedelta(**step)
    for step in (
        *({"minutes": n} for n in (10, 30)),
        *({"hours": n} for n in (1, 3, 6, 12)),
        *({"days": n} for n in (1, 2, 7, 14, 28, 91, 182, 364, 3640)),
    )
]
TICKS = 6
#: The most steps in the line of the remaining budget that get a mark and a title. The latest ones
#: get them.
MARKS = 400


def burn_down_chart(history: BurnDown) -> Markup | None:
    """The chart as SVG; None if nothing was charged yet, or the limit is 0."""
    arm, limit = history.arm, history.arm.limit(history.account)
    if not history.moments or not limit:
        return None
    first, now = history.moments[0].at, history.now
    last, projected = now, history.projected
    if projected is not None and projected.at - now <= 3 * max(now - first, timedelta(hours=1)):
        last = projected.at
    whole = max(last - first, timedelta(minutes=30))

    def x(at: datetime) -> str:
        return f"{LEFT + (WIDTH - LEFT - RIGHT) * min(1.0, (at - first) / whole):.1f}"

    def y(rest: int) -> str:
        return f"{HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * rest / limit:.1f}"

    line, marks = f"M{LEFT} {TOP}", []
    for one in history.moments:
        line += f" H{x(one.at)} V{y(one.rest)}"
        label = f"{_moment(one.at, whole)}: {one.queries} queries, {arm.format(one.rest)} left"
        marks.append(
            f'<circle class="step" cx="{x(one.at)}" cy="{y(one.rest)}" r="6">'
            f"<title>{escape(label)}</title></circle>"
        )
    rest = history.moments[-1].rest
    parts = [f'<path class="axis" d="M{LEFT} {TOP} V{HEIGHT - BOTTOM} H{WIDTH - RIGHT}"/>']
    for quarter in range(5):
        height = y(limit * quarter // 4)
        parts.append(f'<path class="limit" d="M{LEFT} {height} H{WIDTH - RIGHT}"/>')
        if quarter % 2 == 0:
            amount = arm.format(limit * quarter // 4).partition(" ")[2]
            parts.append(_text(LEFT - 8, f"{float(height) + 4:.1f}", amount[:12], "end"))
    parts.append(_text(LEFT + 4, TOP - 8, f"left of the limit ({arm.symbol})", "start"))
    for at in ticks(first, first + whole):
        parts.append(f'<path class="axis" d="M{x(at)} {HEIGHT - BOTTOM} v4"/>')
        parts.append(_text(x(at), HEIGHT - 8, _moment(at, whole), "middle"))
    parts.append(f'<path class="line" d="{line} H{x(now)}"/>')
    parts.append(f'<circle class="mark" cx="{x(now)}" cy="{y(rest)}" r="4"/>')
    parts += marks[-MARKS:]
    if projected is not None and rest and projected.at > now:
        end = min(projected.at, last)
        # The projected line falls from now until the remaining budget is 0. If that moment is
        # beyond the chart, the line ends at the edge of the chart, at the budget that remains then.
        cut = int(rest * ((projected.at - end) / (projected.at - now)))
        parts.append(f'<path class="projected" d="M{x(now)} {y(rest)} L{x(end)} {y(cut)}"/>')
    title = f"What is left of {arm.symbol}, until {now.date()}; the table below has the numbers."
    return Markup(
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(title)}">' + "".join(parts) + "</svg>"
    )


def ticks(first: datetime, last: datetime) -> Iterator[datetime]:
    """At most ``TICKS`` round moments from ``first`` to ``last``, at equal distances."""
    step = next((one for one in STEPS if (last - first) / one <= TICKS - 1), STEPS[-1])
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    at = epoch + -((epoch - first) // step) * step
    while at <= last:
        yield at
        at += step


def _moment(at: datetime, span: timedelta) -> str:
    return f"{at:%H:%M}" if span < timedelta(days=1) else f"{at:%d %b}"


def _text(x: object, y: object, label: str, anchor: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{escape(label)}</text>'
