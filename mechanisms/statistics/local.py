"""Local sensitivity at a distance, and the smooth bound it gives; private, and never published.

U bounds the local sensitivity: U(x, 0) ≥ LS(x) and U(x, s + 1) ≥ U(x', s) for neighbours. Then
S(x) = max over s of e^{−βs}·min(U(x, s), GS) is at least LS(x) and changes by at most a factor of
e^β between neighbours. Source: Nissim, Raskhodnikova, Smith 2007, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from typing import Protocol, runtime_checkable

import numpy as np

from mechanisms.noise.addition import Integers
from mechanisms.statistics.grid import coarse

_FIRST_BLOCK = 256
#: S in steps is at least this, a public constant: it bounds the search where U is long zero.
LEAST = 2.0**-20


class Smooth(Protocol):
    """What a noise scale is made of."""

    def smooth(self, beta: float) -> float:
        """S for a β > 0, in doubles that err by less than 2⁻³⁰ of it; in steps of the grid."""
        ...


@runtime_checkable
class Walked(Smooth, Protocol):
    """A bound that can be asked at every distance."""

    @property
    def cap(self) -> int:
        """GS: what every U(s) is at most."""
        ...

    def at(self, distances: Integers) -> Integers:
        """min(U(s), GS) at each of the distances, int64, non-decreasing, 0 ≤ s < 2³¹."""
        ...


@dataclass(frozen=True)
class Coarse:
    """The same bound for the value floored to steps of 2^exponent. Implements ``Walked``."""

    fine: Walked
    exponent: int

    @property
    def cap(self) -> int:
        return coarse(self.fine.cap, self.exponent)

    def at(self, distances: Integers) -> Integers:
        steps: Integers = -(-self.fine.at(distances) >> self.exponent)
        return steps

    def smooth(self, beta: float) -> float:
        return smooth_maximum(self, beta)


@dataclass(frozen=True)
class Constant:
    """LS ≡ GS: nothing depends on the records. Implements ``Walked``."""

    cap: int

    def at(self, distances: Integers) -> Integers:
        return np.full(distances.shape, self.cap, dtype=np.int64)

    def smooth(self, beta: float) -> float:  # noqa: ARG002 - the same for every β
        return float(self.cap)


def smooth_maximum(local: Walked, beta: float) -> float:
    """max over s of e^{−βs}·U(s), in blocks, until e^{−βs}·GS is no more than what was found."""
    best, start, size = LEAST, 0, _FIRST_BLOCK
    while start == 0 or exp(-beta * start) * local.cap > best:
        distances = np.arange(start, start + size, dtype=np.int64)
        best = max(best, float((np.exp(-beta * distances) * local.at(distances)).max()))
        start, size = start + size, 2 * size
    return best
