"""How many steps δ(0), δ(1), … cover a goal: by bisection, or pass by pass.

The number of steps is private, so the work must not follow it. A δ with closed sums is bisected in
a public number of rounds. Any other δ takes one pass per distance over all candidates.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mechanisms.kernels.spans import PrefixSums, bisected, weighted_sums
from mechanisms.model.sensitivity import Integers


class ClosedForm(ABC):
    """The part of a ``SensitivityFunction`` that follows from sums of δ in closed form."""

    cap: int
    horizon: int
    #: The number of candidates.
    count: int

    @abstractmethod
    def before(self, t: Integers) -> Integers:
        """min(FAR, Σ_{j < t} δ(j)) of every candidate at its own t ≥ 0, int64 (n,).

        FAR is that of ``kernels.spans``. Distances beyond the horizon count with the cap.
        """

    @abstractmethod
    def at(self, t: int | Integers, candidates: Integers) -> Integers:
        """As in ``SensitivityFunction``; t may be one distance for each of ``candidates``."""

    @abstractmethod
    def widest(self, t: Integers) -> Integers:
        """A bound on δ(t) of all candidates at each of these distances, admissible as δ is."""

    def largest(self, t: int) -> int:
        return int(self.widest(np.array([t], dtype=np.int64))[0])

    def covering(self, goals: Integers) -> Integers:
        """How many whole steps each goal takes, at most up to the horizon."""
        return bisected(goals, self.before, self.horizon)

    def passed(self, goals: Integers) -> Integers:
        steps = self.covering(goals)
        width = self.at(steps, np.arange(goals.size))
        return np.stack([steps, goals - self.before(steps), width])

    def passed_by_largest(self, goals: Integers) -> Integers:
        widths = self.widest(np.arange(self.horizon + 1, dtype=np.int64))
        sums, start = PrefixSums.of(widths), np.zeros_like(goals)
        steps = bisected(goals, lambda t: sums.between(start, t), self.horizon)
        return np.stack([steps, goals - sums.between(start, steps), widths[steps]])

    def shortfall(self) -> Integers:
        # The horizon is the distance from which on the sensitivity function δ equals its cap. In
        # the mode ``shifted``, grid steps are so large that horizon times cap is below 2^62. So the
        # sum of δ here is not cut off at ``FAR``, the largest number that sums take, and it is
        # subtracted exactly.
        ends = np.full(self.count, self.horizon, dtype=np.int64)
        return self.horizon * self.cap - self.before(ends)


class Stepwise(ABC):
    """The part of a ``SensitivityFunction`` that follows from δ at one distance after another."""

    cap: int
    horizon: int
    #: Danger: if this is True, the number of rounds depends on the records, because the loop over
    #: distances t ends once the sum of δ(0), δ(1), … covers every utility. If it is False, the loop
    #: has one round for each distance up to a public one.
    ends_early = False

    @abstractmethod
    def at(self, t: int, candidates: Integers) -> Integers:
        """As in ``SensitivityFunction``."""

    @abstractmethod
    def largest(self, t: int) -> int:
        """As in ``SensitivityFunction``."""

    def passed(self, goals: Integers) -> Integers:
        everyone = np.arange(goals.size)
        return self._passes(goals, lambda t: self.at(t, everyone))

    def passed_by_largest(self, goals: Integers) -> Integers:
        return self._passes(goals, lambda t: np.full_like(goals, self.largest(t)))

    def _passes(self, goals: Integers, at: Callable[[int], Integers]) -> Integers:
        steps, rest = np.zeros_like(goals), goals.copy()
        width, uncovered = np.full_like(goals, self.cap), goals > 0
        for t in range(self.horizon):
            if self.ends_early and not uncovered.any():
                break
            step = at(t)
            width = np.where(uncovered & (rest <= step), step, width)
            uncovered &= rest > step
            steps += uncovered
            rest -= step * uncovered
        return np.stack([steps, rest, width])


@dataclass(frozen=True)
class ConstantSensitivity(ClosedForm):
    """A δ that always equals Δ, for ``count`` candidates: admissible for every utility.

    Local dampening with it gives the scores of the global sensitivity.
    """

    cap: int
    count: int
    horizon: int = 1

    def before(self, t: Integers) -> Integers:
        return weighted_sums([(self.cap, t)])

    def at(self, t: int | Integers, candidates: Integers) -> Integers:
        return np.full(candidates.shape, self.cap, dtype=np.int64)

    def widest(self, t: Integers) -> Integers:
        return np.full(t.shape, self.cap, dtype=np.int64)
