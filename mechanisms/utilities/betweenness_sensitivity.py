"""Two sensitivity functions of egocentric betweenness, both monotone in public ranges.

One edge changes degrees and co-degrees by at most one, and no degree exceeds the bound D. So δ at
t + 1 covers δ at t of every graph that differs in one edge: (A2) of ``model.sensitivity``. Both
reach the same cap Δ = g(D − 1), g(k) = max(k(k − 1)/4, k), at T = D. The bound is D − 1 because a
node of degree D cannot gain an edge.

Source: Local Dampening, PVLDB 14(4), 2021, Lemma 5.2 and Definition 5.3, with the exact bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mechanisms.model.sensitivity import Integers


def quarters(k: Integers, bits: int) -> Integers:
    """⌈2^bits · k(k − 1) / 4⌉ for each k."""
    return -(-((k * (k - 1)) << bits) >> 2)


@dataclass(frozen=True)
class DegreeForm:
    """δ(t) = g(min(d + t, D − 1)): the smallest admissible function of the degree d alone."""

    degree: Integers
    #: ⌈2^bits · g(k)⌉ for k = 0 … D − 1, at least one step each.
    steps: Integers
    horizon: int

    @classmethod
    def of(cls, degree: Integers, max_degree: int, bits: int) -> DegreeForm:
        k = np.arange(max(max_degree, 1), dtype=np.int64)
        steps = np.maximum(np.maximum(quarters(k, bits), k << bits), 1)
        return cls(degree, steps, max(max_degree, 1))

    @property
    def cap(self) -> int:
        return int(self.steps[-1])

    def at(self, t: int, candidates: Integers) -> Integers:
        steps: Integers = self.steps[np.minimum(self.degree[candidates] + t, self.steps.size - 1)]
        return steps

    def largest(self, t: int) -> int:
        return int(self.steps[min(self._hub + t, self.steps.size - 1)])

    @cached_property
    def _hub(self) -> int:
        return int(self.degree.max())

    def shortfall(self) -> Integers:
        # Σ_{k ≥ d} (Δ − g(k)) for every degree d: the shortfall of a node is the entry of its
        # degree.
        missing = np.zeros(self.steps.size + 1, dtype=np.int64)
        missing[:-1] = np.cumsum((self.cap - self.steps)[::-1])[::-1]
        short: Integers = missing[np.minimum(self.degree, self.steps.size)]
        return short


@dataclass(frozen=True)
class CoDegreeForm:
    """δ(t) = max(min(d + t, D − 1), m(m − 1)/4), m = min(κ + t, D − 1): at most the degree form.

    d is the degree, D its public bound, and κ the most neighbours that are shared with any other
    node. An edge to a node with k shared neighbours opens at most d − k new pairs. It takes at most
    one half each from k(k − 1)/2 pairs.
    """

    degree: Integers
    #: κ of every node; at most d, because shared neighbours are neighbours.
    co_degree: Integers
    max_degree: int
    bits: int
    cap: int
    horizon: int

    @classmethod
    def of(cls, degree: Integers, co_degree: Integers, max_degree: int, bits: int) -> CoDegreeForm:
        cap = DegreeForm.of(degree, max_degree, bits).cap
        return cls(degree, co_degree, max_degree, bits, cap, max(max_degree, 1))

    @property
    def _top(self) -> int:
        return max(self.max_degree - 1, 0)

    def _steps(self, degree: Integers, co_degree: Integers, t: int) -> Integers:
        linear = np.minimum(degree + t, self._top) << self.bits
        quadratic = quarters(np.minimum(co_degree + t, self._top), self.bits)
        steps: Integers = np.maximum(np.maximum(linear, quadratic), 1)
        return steps

    def at(self, t: int, candidates: Integers) -> Integers:
        return self._steps(self.degree[candidates], self.co_degree[candidates], t)

    def largest(self, t: int) -> int:
        # One part grows with d and the other with κ, so their maxima may be taken separately.
        return int(self._steps(*self._hubs, t)[0])

    @cached_property
    def _hubs(self) -> tuple[Integers, Integers]:
        return self.degree.max(keepdims=True), self.co_degree.max(keepdims=True)

    def shortfall(self) -> Integers:
        """Differences of prefix sums: δ(t) is its linear part before t*, then its quadratic one."""
        k = np.minimum(np.arange(2 * self.horizon + 1, dtype=np.int64), self._top)
        linear = _before(self.cap - np.maximum(k << self.bits, 1))
        quadratic = _before(self.cap - np.maximum(quarters(k, self.bits), 1))
        turn = self._turn()
        early = linear[self.degree + turn] - linear[self.degree]
        late = quadratic[self.co_degree + self.horizon] - quadratic[self.co_degree + turn]
        short: Integers = early + late
        return short

    def _turn(self) -> Integers:
        """t* ≤ T: the first t with m(m − 1)/4 > min(d + t, D − 1), by bisection.

        Once the quadratic part is larger, it stays larger: m(m − 1)/4 > d + t ≥ m needs m > 5, and
        from there it gains m/2 ≥ 3 per step while the linear part gains one.
        """
        low = np.zeros(self.degree.shape, dtype=np.int64)
        high = np.full(self.degree.shape, self.horizon, dtype=np.int64)
        for _ in range(self.horizon.bit_length()):
            middle = (low + high) >> 1
            m = np.minimum(self.co_degree + middle, self._top)
            ahead = m * (m - 1) > 4 * np.minimum(self.degree + middle, self._top)
            high = np.where(ahead, middle, high)
            low = np.where(ahead, low, np.minimum(middle + 1, high))
        return high


def _before(values: Integers) -> Integers:
    """Sums of all earlier values: entry k is Σ_{j < k}."""
    sums: Integers = np.cumsum(values) - values
    return sums
