"""Trends: how a utility and its δ vary with a candidate's size, as public constants.

The direction of the shift of a weighted sum follows from them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable


@dataclass(frozen=True)
class Trend:
    """How u and δ vary with the size of a candidate (degree of a node, records of a value).

    ``value`` and ``sensitivity`` are signs; 0 means that δ is constant. ``growth`` is the power of
    the size to which both grow at most. The direction of the utility is the product of the signs.
    """

    value: Literal[1, -1]
    sensitivity: Literal[1, 0, -1]
    growth: int = 0


@runtime_checkable
class TrendingUtility(Protocol):
    """A utility with a known trend. Any other counts as ``Trend(1, direction)``."""

    trend: Trend
