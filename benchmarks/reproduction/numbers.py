"""How the numbers of result files are written in the report."""

from __future__ import annotations

from typing import Any


def shown(cell: Any) -> str:
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
