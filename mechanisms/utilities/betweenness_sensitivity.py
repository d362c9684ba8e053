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

from mechanisms.kernels.spans import PrefixSums, TwoParts, bisected_in_two, sums_in_two
from mechanisms.model.sensitivity import Integers
from mechanisms.utilities.covering import ClosedForm


def quarters(k: Integers, bits: int) -> Integers:
    """⌈2^bits · k(k − 1) / 4⌉ for each k."""
    return -(-((k * (k - 1)) << bits) >> 2)


@dataclass(frozen=True)
class DegreeForm(ClosedForm):
    """δ(t) = g(min(d + t, D − 1)): the smallest admissible function of the degree d alone."""

    degree: Integers
    #: The sensitivity function δ of a node with k neighbours, as a list by k from 0 to D − 1, where
    #: D is the public bound on degrees. It is ⌈2^bits · max(k(k − 1)/4, k)⌉ grid steps, at least
    #: one.
    steps: Integers
    horizon: int

    @classmethod
    def of(cls, degree: Integers, max_degree: int, bits: int) -> DegreeForm:
        k = np.arange(max(max_degree, 1), dtype=np.int64)
        steps = np.maximum(np.maximum(quarters(k, bits), k << bits), 1)
        return cls(degree.astype(np.int64), steps, max(max_degree, 1))

    @property
    def cap(self) -> int:  # type: ignore[override]
        return int(self.steps[-1])

    @property
    def count(self) -> int:  # type: ignore[override]
        return self.degree.size

    @cached_property
    def _sums(self) -> PrefixSums:
        return PrefixSums.of(self.steps)

    def before(self, t: Integers) -> Integers:
        return self._sums.between(self.degree, self.degree + t)

    def at(self, t: int | Integers, candidates: Integers) -> Integers:
        steps: Integers = self.steps[np.minimum(self.degree[candidates] + t, self.steps.size - 1)]
        return steps

    def widest(self, t: Integers) -> Integers:
        steps: Integers = self.steps[np.minimum(self.degree.max() + t, self.steps.size - 1)]
        return steps


@dataclass(frozen=True)
class CoDegreeForm(ClosedForm):
    """δ(t) = max(min(d + t, D − 1), m(m − 1)/4), m = min(κ + t, D − 1): at most the degree form.

    d is the degree, D its public bound, and κ the most neighbours that are shared with any other
    node. An edge to a node with k shared neighbours opens at most d − k new pairs. It takes at most
    one half each from k(k − 1)/2 pairs.
    """

    degree: Integers
    #: The co-degree κ of every node: the most neighbours that it shares with another node. It is at
    #: most the node's degree d.
    co_degree: Integers
    max_degree: int
    bits: int
    cap: int
    horizon: int

    @classmethod
    def of(cls, degree: Integers, co_degree: Integers, max_degree: int, bits: int) -> CoDegreeForm:
        cap = DegreeForm.of(degree, max_degree, bits).cap
        degree, co_degree = degree.astype(np.int64), co_degree.astype(np.int64)
        return cls(degree, co_degree, max_degree, bits, cap, max(max_degree, 1))

    @property
    def count(self) -> int:  # type: ignore[override]
        return self.degree.size

    @property
    def _top(self) -> int:
        return max(self.max_degree - 1, 0)

    def at(self, t: int | Integers, candidates: Integers) -> Integers:
        linear, quadratic = self._parts
        d = np.minimum(self.degree[candidates] + t, self._top)
        c = np.minimum(self.co_degree[candidates] + t, self._top)
        steps: Integers = np.maximum(linear[d], quadratic[c])
        return steps

    def widest(self, t: Integers) -> Integers:
        # The sensitivity function δ is the larger of a part that grows with the degree of a node
        # and one that grows with its co-degree, the most neighbours that it shares with another
        # node. So the largest degree and the largest co-degree bound δ, even if they belong to two
        # nodes.
        linear, quadratic = self._parts
        d = np.minimum(self.degree.max() + t, self._top)
        c = np.minimum(self.co_degree.max() + t, self._top)
        steps: Integers = np.maximum(linear[d], quadratic[c])
        return steps

    @cached_property
    def _parts(self) -> tuple[Integers, Integers]:
        """The linear and the quadratic part of a step, for each number of neighbours below D."""
        k = np.arange(self._top + 1, dtype=np.int64)
        return np.maximum(k << self.bits, 1), np.maximum(quarters(k, self.bits), 1)

    def before(self, t: Integers) -> Integers:
        return sums_in_two(self._sums, np.asarray(t))

    def covering(self, goals: Integers) -> Integers:
        return bisected_in_two(goals, self._sums, self.horizon)

    @cached_property
    def _sums(self) -> TwoParts:
        """δ(t) is its linear part before t*, then its quadratic one."""
        linear, quadratic = self._parts
        return TwoParts(
            PrefixSums.of(linear),
            self.degree,
            PrefixSums.of(quadratic),
            self.co_degree,
            self._turn,
        )

    @cached_property
    def _turn(self) -> Integers:
        """t* ≤ T: the first t with m(m − 1)/4 > min(d + t, D − 1).

        That is the first with m(m − 1) > 4(d + t) or with m(m − 1) > 4(D − 1). For m = κ + t the
        former says m(m − 5) > 4(d − κ), so a public table has the least m ≥ 6 of every d − κ, and
        one number serves the latter. Once true, both stay true.
        """
        k = np.arange(5, self._top + 1, dtype=np.int64)
        # The list ends with a number that stands for no solution. It is larger than every co-degree
        # after changes of edges, because these never exceed D − 1, where D is the public bound on
        # degrees.
        least = np.append(k, self.max_degree + self.horizon)
        behind = np.arange(self.max_degree + 1, dtype=np.int64)
        of_degree = least[np.searchsorted(k * (k - 5), 4 * behind, side="right")]
        of_bound = least[np.searchsorted(k * (k - 1), 4 * self._top, side="right")]
        m = np.minimum(of_degree[self.degree - self.co_degree], of_bound)
        turn: Integers = np.minimum(np.maximum(m - self.co_degree, 0), self.horizon)
        return turn
