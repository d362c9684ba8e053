"""Bounds U on the local sensitivity at a distance, and the smooth bound S that they give.

Danger: these values are private and never published. U(x, s) bounds the local sensitivity LS of
all datasets at distance s from x: U(x, 0) ≥ LS(x), and U(x, s + 1) ≥ U(x', s) for neighbours x'.
Then S(x) = max over s of e^{−βs}·min(U(x, s), GS) is at least LS(x) and changes by at most a factor
of e^β between neighbours. GS is the global sensitivity.

Source: Nissim, Raskhodnikova, Smith 2007, section 3.
"""

from dataclasses import dataclass
from math import log
from typing import Protocol, runtime_checkable

import numpy as np

from mechanisms.noise.addition import Integers
from mechanisms.statistics.grid import coarse

#: The least smooth bound S on the local sensitivity, in grid steps. It is public and keeps S above
#: 0. It also ends the search for S over all distances s, because e^{−βs} times the global
#: sensitivity is smaller beyond some s and cannot raise S.
LEAST = 2.0**-20


class SmoothBound(Protocol):
    """A smooth bound S on the local sensitivity, from which a noise scale is computed."""

    def smooth(self, beta: float) -> float:
        """Return S in grid steps, for the smoothness β > 0, with a relative error below 2⁻³⁰."""
        ...


@runtime_checkable
class DistanceBound(SmoothBound, Protocol):
    """A bound U(s) on the local sensitivity at every distance s."""

    @property
    def cap(self) -> int:
        """The global sensitivity GS in grid steps, which bounds every U(s)."""
        ...

    @property
    def reach(self) -> int:
        """A public distance: from it on U(s) = GS for every dataset of the description."""
        ...

    def at(self, distances: Integers) -> Integers:
        """Return min(U(s), GS) for each distance 0 ≤ s < 2³¹, as int64; it never falls with s."""
        ...


class SmoothMaximum:
    """Computes ``DistanceBound.smooth`` from the methods ``at`` and ``cap`` of a subclass."""

    def smooth(self: DistanceBound, beta: float) -> float:
        """Return max over s of e^{−βs}·U(s).

        The search ends at a public distance. Beyond ``reach`` the terms fall, and beyond the other
        end they are below ``LEAST``.
        """
        end = min(self.reach, int(log(max(self.cap / LEAST, 1.0)) / beta) + 1)
        distances = np.arange(end + 1, dtype=np.int64)
        return max(LEAST, float((np.exp(-beta * distances) * self.at(distances)).max()))


@dataclass(frozen=True)
class CoarseBound(SmoothMaximum):
    """The ``DistanceBound`` ``fine`` for a value that is rounded down to steps of 2^exponent."""

    fine: DistanceBound
    exponent: int

    @property
    def cap(self) -> int:
        return coarse(self.fine.cap, self.exponent)

    @property
    def reach(self) -> int:
        return self.fine.reach

    def at(self, distances: Integers) -> Integers:
        steps: Integers = -(-self.fine.at(distances) >> self.exponent)
        return steps


@dataclass(frozen=True)
class ConstantBound:
    """A ``DistanceBound`` that equals the global sensitivity, so it is the same for all records."""

    cap: int
    reach: int = 0

    def at(self, distances: Integers) -> Integers:
        return np.full(distances.shape, self.cap, dtype=np.int64)

    def smooth(self, beta: float) -> float:
        return float(self.cap)
