"""Released numbers with their intervals, in the one form in which every answer shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, nextafter

#: The confidence of all answers. It is the probability with which the interval of a released number
#: contains the true number, and with which an error bound holds.
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Number:
    """A released number; ``low`` and ``high`` are None where the law of its noise is private.

    ``raw`` is the number before an adjustment such as clamping, or None if there was none. The
    interval is of the true number that ``raw`` estimates.
    """

    value: Fraction | int
    low: Fraction | int | None = None
    high: Fraction | int | None = None
    raw: Fraction | int | None = None

    def as_dict(self) -> dict[str, int | float]:
        """The number as JSON; ends that are no double are rounded outwards."""
        shape: dict[str, int | float] = {"value": nearest(self.value)}
        if self.low is not None and self.high is not None:
            shape |= {"low": _below(self.low), "high": -_below(-self.high)}
        if self.raw is not None:
            shape["raw"] = nearest(self.raw)
        return shape


def whole_number(value: int, error: int) -> dict[str, int]:
    """A whole number as JSON, whose noise is at most ``error`` with probability ``CONFIDENCE``.

    This is the form of ``Number.as_dict``, in less time: trees have thousands of counts.
    """
    return {"value": value, "low": value - error, "high": value + error}


def whole_numbers(values: Sequence[int], error: int) -> dict[str, list[int]]:
    """The lists of ``value``, ``low`` and ``high`` of several whole numbers with one error."""
    return {
        "value": list(values),
        "low": [value - error for value in values],
        "high": [value + error for value in values],
    }


def nearest(value: Fraction | int) -> int | float:
    """Converts a whole number to ``int``, and any other number to the nearest ``float``."""
    return value.numerator if value.denominator == 1 else float(value)


def _below(value: Fraction | int) -> int | float:
    """The largest whole number or double that is at most ``value``."""
    if value.denominator == 1:
        return value.numerator
    near = float(value)
    return near if Fraction(near) <= value else nextafter(near, -inf)
