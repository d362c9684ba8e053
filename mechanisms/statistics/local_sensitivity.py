"""Bounds on the local sensitivity at a distance, and the smooth bound that they give.

These values are private and never published. U bounds the local sensitivity: U(x, 0) ≥ LS(x) and
U(x, s + 1) ≥ U(x', s) for neighbours. Then S(x) = max over s of e^{−βs}·min(U(x, s), GS) is at
least LS(x) and changes by at most a factor of e^β between neighbours.

Source: Nissim, Raskhodnikova, Smith 2007, section 3.
"""

from dataclasses import dataclass
from math import exp
from typing import Protocol, runtime_checkable

import numpy as np

from mechanisms.noise.addition import Integers
from mechanisms.statistics.grid import coarse

_FIRST_BLOCK = 256
#: S in steps is at least this public constant, which ends the search where U is 0 for long.
LEAST = 2.0**-20


class SmoothBound(Protocol):
    """A smooth bound S, from which a noise scale is computed."""

    def smooth(self, beta: float) -> float:
        """S for a β > 0, in steps of the grid, as a double that errs by less than 2⁻³⁰ of it."""
        ...


@runtime_checkable
class DistanceBound(SmoothBound, Protocol):
    """A bound U(s) that is available at every distance s."""

    @property
    def cap(self) -> int:
        """GS: an upper bound on every U(s)."""
        ...

    def at(self, distances: Integers) -> Integers:
        """min(U(s), GS) at each of the distances, int64, non-decreasing, 0 ≤ s < 2³¹."""
        ...


class SmoothMaximum:
    """Implements ``DistanceBound.smooth`` from ``at`` and ``cap``."""

    def smooth(self: DistanceBound, beta: float) -> float:
        """max over s of e^{−βs}·U(s), in blocks, until e^{−βs}·GS cannot exceed the maximum."""
        best, start, size = LEAST, 0, _FIRST_BLOCK
        while start == 0 or exp(-beta * start) * self.cap > best:
            distances = np.arange(start, start + size, dtype=np.int64)
            best = max(best, float((np.exp(-beta * distances) * self.at(distances)).max()))
            start, size = start + size, 2 * size
        return best


@dataclass(frozen=True)
class CoarseBound(SmoothMaximum):
    """The same bound for a value floored to steps of 2^exponent. Implements ``DistanceBound``."""

    fine: DistanceBound
    exponent: int

    @property
    def cap(self) -> int:
        return coarse(self.fine.cap, self.exponent)

    def at(self, distances: Integers) -> Integers:
        steps: Integers = -(-self.fine.at(distances) >> self.exponent)
        return steps


@dataclass(frozen=True)
class ConstantBound:
    """LS ≡ GS: nothing depends on the records. Implements ``DistanceBound``."""

    cap: int

    def at(self, distances: Integers) -> Integers:
        return np.full(distances.shape, self.cap, dtype=np.int64)

    def smooth(self, beta: float) -> float:
        return float(self.cap)
