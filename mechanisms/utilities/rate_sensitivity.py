"""The sensitivity function of a rate hits/total, which is one half if there is nothing to hit.

With s the smaller and M the larger of hits and misses, P = s + M, the exact local sensitivities:
    add/remove  1/2 where P = 0;  1/max(P − t + 1, 2) where s = 0;  else
                M/((P − t)(P − t − 1)) for t < s,  1/max(P − t, 2) for t ≥ s
    replace     1/max(P − t, 1), whatever the hits
The rate moves most if the rarer kind is removed first; a replacement turns a hit into a miss. Each
value is rounded up to whole steps. δ of a weighted sum of rates has the same form, so one class
serves both. All sums over t are in ``kernels.rates``.

Source: Differentially Private Multi-Objective Selection, section 6.2.3, with corrected branches,
    floors and relation (as printed it is not admissible).
"""

from functools import cached_property
from typing import Self

import numpy as np

from mechanisms.kernels import rates
from mechanisms.kernels.radix import ascending, classes, lexicographic
from mechanisms.model.domains import NeighbouringRelation
from mechanisms.model.facts import SensitivityFacts
from mechanisms.model.following import follows_records
from mechanisms.model.sensitivity import Integers

RATE_FACTS = {
    NeighbouringRelation.ADD_REMOVE: SensitivityFacts(
        cap="1/2",
        function=(
            "M / ((P - t)(P - t - 1)) for t < s, 1/max(P - t, 2) from s on; "
            "1/max(P - t + 1, 2) where s = 0, 1/2 where P = 0"
        ),
        horizon="N + 1",
        terms="P: records that can be hit; s, M: the smaller and the larger of hits and misses; "
        "N: max_rows",
    ),
    NeighbouringRelation.REPLACE: SensitivityFacts(
        cap="1",
        function="1/max(P - t, 1)",
        horizon="N",
        terms="P: records that can be hit; N: rows",
    ),
}


class RateSensitivity(rates.Rates):
    """δ of ``kernels.rates`` as an object. Implements ``SensitivityFunction``."""

    @classmethod
    def of_one(
        cls, hits: Integers, totals: Integers, bits: int, replace: bool, cap: int, horizon: int
    ) -> Self:
        """δ of a single rate, int64 (n,) each."""
        members = np.array([[1, bits, cap, 0]], dtype=np.int64)
        hits, totals = (np.atleast_2d(counts.astype(np.int64)) for counts in (hits, totals))
        return cls(hits, totals, members, replace, cap, horizon)

    def at(self, t: int, candidates: Integers) -> Integers:
        if t >= self.horizon:
            return np.full(candidates.shape, self.cap, dtype=np.int64)
        return rates.steps(self, t, candidates)

    def largest(self, t: int) -> int:
        return int(self.at(t, self._decisive).max())

    def shortfall(self) -> Integers:
        turns = np.zeros_like(self._kinds) if self.replace else self._fewer.max(axis=0)
        order = lexicographic(-turns, self._kinds)
        return rates.shortfalls(self, self._kinds, turns, order)

    def passed(self, goals: Integers) -> Integers:
        return self._walk(goals, np.zeros(0, dtype=np.int64))

    def passed_by_largest(self, goals: Integers) -> Integers:
        return self._walk(goals, self._decisive)

    @follows_records(
        "trees of equal counts are taken together", lambda self: 64 * (self.hits.size + 2048)
    )
    def _walk(self, goals: Integers, largest_of: Integers) -> Integers:
        return rates.walk(self, goals, ascending(goals), largest_of)

    @cached_property
    def _fewer(self) -> Integers:
        fewer: Integers = np.minimum(self.hits, self.totals - self.hits)
        return fewer

    @cached_property
    @follows_records(
        "trees of equal counts are taken together", lambda self: 64 * (self.hits.size + 2048)
    )
    def _kinds(self) -> Integers:
        """Numbers the candidates by kind: by their totals and, except under ``replace``, by which
        of their rates have no hits or no misses.
        """
        never = (self._fewer == 0).astype(np.int64)
        return classes(*self.totals, *(never[:0] if self.replace else never))[0]

    @cached_property
    @follows_records(
        "trees of equal counts are taken together", lambda self: 64 * (self.hits.size + 2048)
    )
    def _decisive(self) -> Integers:
        """A small set of candidates that contains the largest δ(t) at every t.

        Among rates with s > 0 the smallest s has the largest δ at every t, and all with s = 0 are
        equal. Under replace hits do not matter.
        """
        if self.replace:
            return classes(self._kinds)[1]
        chosen = []
        for fewer in self._fewer:
            order = lexicographic(fewer, self._kinds)
            chosen.append(order[classes(self._kinds[order])[1]])
        return np.concatenate(chosen)
