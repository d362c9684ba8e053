"""The sensitivity function of the Pareto score, by counting dominance of boxes.

After t + 1 changes, utility i of a candidate lies in uᵢ ± Sᵢ, Sᵢ = Σ_{j ≤ t} δᵢ(j); these intervals
are its box. Let p others dominate a candidate now. After any t + 1 changes, at least C_t and at
most A_t others dominate it. Then
    δ(t) = max(A_{t−1} − C_t, A_t − C_{t−1}),  A_{−1} = C_{−1} = p,
bounds both the loss and the gain in step t + 1, and one change shifts t by at most one.

Source: Differentially Private Multi-Objective Selection, Definition 4.5 and Theorem 4.7, with three
    corrections. Boxes that touch count among possible losses (otherwise (A1) fails). The candidate
    itself is left out. Losses and gains are separate, which halves δ approximately.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from mechanisms.kernels.dominance import Places, dominators, interval_dominators, widen
from mechanisms.kernels.radix import ascending
from mechanisms.model.executor import Executor
from mechanisms.model.sensitivity import Integers
from mechanisms.utilities.covering import Stepwise
from mechanisms.utilities.utility import Grid, Measurement

#: The most bytes of cached counts of how many others dominate each candidate. The next draw reuses
#: them. At distances t for which none are cached, it counts again.
CACHE_BYTES = 1 << 26

Counts = tuple[Places, Places]


@dataclass
class _BoxSequence:
    """The boxes of candidates after one change, after two, and so on."""

    members: Sequence[Measurement]
    grids: Sequence[Grid]
    #: The box of a candidate is the range in which its utilities may lie after some changes. This
    #: is the index of the box of each remaining candidate.
    places: Integers
    #: The indices of the remaining candidates and their utilities, both in the order in which the
    #: boxes of the candidates are stored.
    rest: Integers
    values: Integers
    #: How far all changes so far may have moved each utility of each remaining candidate, of shape
    #: (members, rest). It is the sum of the utility's sensitivities δ(0), δ(1), … so far.
    sums: Integers
    changes: int = 0

    def widened(self) -> Integers:
        """The boxes after one change more, (members, 2, rest)."""
        boxes = np.empty((len(self.members), 2, self.rest.size), dtype=np.int64)
        for i, (member, grid) in enumerate(zip(self.members, self.grids, strict=True)):
            steps = member.delta.at(self.changes, self.rest)
            widen(self.values[i], self.sums[i], steps, grid.cap, grid.largest, boxes[i])
        self.changes += 1
        return boxes


@dataclass
class ParetoSensitivity(Stepwise):
    """δ of the candidates ``rest``, in their order; built by ``of`` and ``without``.

    Counts of one t need the sums of all earlier t, so rising order of t is the fastest.
    """

    members: Sequence[Measurement]
    grids: Sequence[Grid]
    horizon: int
    executor: Executor
    #: The indices of the candidates that ``without`` has not removed.
    rest: Integers
    #: The utility of each candidate of ``rest`` by each member objective, shape (members, rest).
    values: Integers
    #: The number of candidates of ``rest`` that dominate each of them, that is, are better in every
    #: utility; int32.
    dominators: Places
    #: Cached counts (A_t, C_t) for t = 0, 1, …: after t + 1 changes of the records, at most A_t and
    #: at least C_t other candidates dominate each candidate.
    levels: list[Counts] = field(default_factory=list)
    _boxes: _BoxSequence | None = None
    _recent: dict[int, Counts] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        members: Sequence[Measurement],
        grids: Sequence[Grid],
        horizon: int,
        executor: Executor,
    ) -> ParetoSensitivity:
        """δ of all candidates, n ≥ 1, of members on their own grids."""
        values = np.stack([member.utilities for member in members])
        everyone = np.arange(values.shape[1], dtype=np.int64)
        better = dominators(values, [grid.largest for grid in grids], executor)
        return cls(members, grids, horizon, executor, everyone, values, better)

    def without(self, place: int) -> ParetoSensitivity:
        """δ without the candidate at ``place``, by one comparison per candidate and cached t."""
        gone = (self.values[:, [place]] > self.values).all(axis=0)
        smaller = ParetoSensitivity(
            self.members,
            self.grids,
            self.horizon,
            self.executor,
            np.delete(self.rest, place),
            np.delete(self.values, place, axis=1),
            np.delete(self.dominators - gone, place),
        )
        sequence = self._sequence(np.arange(self.rest.size, dtype=np.int64))
        for possible, certain in self.levels:
            boxes = sequence.widened()
            lower, upper = boxes[:, 0], boxes[:, 1]
            may = (upper[:, [place]] > lower).all(axis=0)
            must = (lower[:, [place]] > upper).all(axis=0)
            smaller.levels.append(
                (np.delete(possible - may, place), np.delete(certain - must, place))
            )
        return smaller

    @property
    def cap(self) -> int:  # type: ignore[override]
        return max(self.rest.size - 1, 1)

    def at(self, t: int, candidates: Integers) -> Integers:
        if t >= self.horizon:
            return np.full(candidates.shape, self.cap, dtype=np.int64)
        return self._steps(t)[candidates].astype(np.int64)

    def largest(self, t: int) -> int:
        return self.cap if t >= self.horizon else int(self._steps(t).max())

    def shortfall(self) -> Integers:
        short = np.zeros(self.rest.size, dtype=np.int64)
        for t in range(self.horizon):
            short += self.cap - self._steps(t)
        return short

    def _steps(self, t: int) -> Places:
        """δ(t) of all candidates of ``rest``, t below the horizon."""
        (may_before, must_before), (may, must) = self._counts(t - 1), self._counts(t)
        # The sensitivity δ is a difference of two counts of candidates that dominate one candidate.
        # No count exceeds n − 1, the cap of δ, so only its least allowed value, one step, must be
        # enforced.
        steps: Places = np.maximum(np.maximum(may_before - must, may - must_before), 1)
        return steps

    def _counts(self, t: int) -> Counts:
        if t < 0:
            return self.dominators, self.dominators
        if t < len(self.levels):
            return self.levels[t]
        if t not in self._recent:
            counts = self._counted(t)
            if t == len(self.levels) and (t + 1) * 8 * self.rest.size <= CACHE_BYTES:
                self.levels.append(counts)
                return counts
            self._recent = {u: past for u, past in self._recent.items() if u == t - 1}
            self._recent[t] = counts
        return self._recent[t]

    def _counted(self, t: int) -> Counts:
        if self._boxes is None or t < self._boxes.changes:
            self._boxes = self._sequence(self._by_utility())
        for _ in range(self._boxes.changes, t + 1):
            boxes = self._boxes.widened()
        # A box is the range of a candidate's utilities after some changes. ``widen`` moves its ends
        # at most one step beyond the largest utility, so ``edges`` bounds every box.
        edges = [grid.largest + 1 for grid in self.grids]
        counts = interval_dominators(boxes[:, 0], boxes[:, 1], edges, self.executor)
        return counts[0].take(self._boxes.places), counts[1].take(self._boxes.places)

    def _by_utility(self) -> Integers:
        """The order of the candidates by the first utility, then by the next, and so on.

        Boxes that are compared are then near each other in memory: a count takes up to half less.
        """
        order = np.arange(self.rest.size, dtype=np.int64)
        for row, grid in zip(self.values[::-1], self.grids[::-1], strict=True):
            order = order[ascending(row[order], grid.largest)]
        return order

    def _sequence(self, order: Integers) -> _BoxSequence:
        places = np.empty_like(order)
        places[order] = np.arange(order.size)
        values = self.values.take(order, axis=1)
        return _BoxSequence(
            self.members, self.grids, places, self.rest[order], values, np.zeros_like(values)
        )
