"""Intervals of numbers that are made of several released ones.

Each released number has an interval that misses with a share of the allowed chance. By the union
bound all hold together, and the extremes over the box of these intervals hold with them.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Box(NamedTuple):
    """The ends of an interval of each number, all of one shape."""

    low: Floats
    high: Floats

    def within(self, low: float, high: float) -> "Box":
        """The part inside public bounds, which the true number obeys."""
        return Box(np.clip(self.low, low, high), np.clip(self.high, low, high))


def quotients(numerators: Box, counts: Box) -> Box:
    """The extremes of numerator / count; unbounded where the count's interval reaches 0."""
    fewest, most = np.maximum(counts.low, 1), np.maximum(counts.high, 1)
    low = numerators.low / np.where(numerators.low < 0, fewest, most)
    high = numerators.high / np.where(numerators.high > 0, fewest, most)
    empty = counts.low < 1
    return Box(np.where(empty, -np.inf, low), np.where(empty, np.inf, high))


def squares(box: Box) -> Box:
    """The extremes of the square of a number in each interval."""
    ends = np.square(np.stack(box))
    touches_zero = (box.low <= 0) & (box.high >= 0)
    return Box(np.where(touches_zero, 0.0, ends.min(axis=0)), ends.max(axis=0))
