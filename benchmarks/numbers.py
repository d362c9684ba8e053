"""How the numbers of results are written, in the report and on a terminal."""

from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.result import Result


def formatted(cell: Any) -> str:
    """Text as it is; numbers to three digits; a pair as a mean with half its interval."""
    if cell is None:
        return "none"
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int | float):
        return number(cell)
    value, half = cell
    if half is None:
        return f"{number(value)} s"
    return number(value) if half == 0 else f"{number(value)} ± {number(half)}"


def number(value: float) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    if value and (abs(value) < 1e-3 or abs(value) >= 1e5):
        digits, _, power = f"{value:.2e}".partition("e")
        return f"{float(digits):g}e{power}"
    return f"{value:.4g}" if abs(value) >= 1000 else f"{value:.3g}"


def printed(result: Result) -> Iterator[str]:
    """Plots and tables as lines of text."""
    for plot in result.plots:
        rows = [[name, *map(formatted, line)] for name, line in plot.lines.items()]
        yield from _aligned(
            f"{plot.title}: {plot.up}", [plot.across, *map(formatted, plot.at)], rows
        )
    for table in result.tables:
        yield from _aligned(
            table.title, table.columns, [[*map(formatted, row)] for row in table.rows]
        )


def _aligned(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    lines = [list(head), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    yield f"\n{title}"
    for first, *rest in lines:
        cells = [cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
        yield "  ".join(["", first.ljust(widths[0]), *cells])
