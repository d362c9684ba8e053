"""The sensitivity function δ: the most that one change moves a utility u at distance t.

Its values are private, because they come from records; ``cap`` and ``horizon`` are public. δ is
*admissible* for a neighbouring relation when, for all neighbours x, y, candidates r, t ≥ 0,
    (A1) δ(x, 0, r) ≥ |u(x, r) − u(y, r)|   and   (A2) δ(x, t + 1, r) ≥ δ(y, t, r).
Its values are whole steps of the grid of its utility, so the guarantee is free of rounding errors.
"""

from enum import StrEnum
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


class Sensitivity(StrEnum):
    """How a utility becomes a score of sensitivity one (``mechanisms.selection.dampening``)."""

    description: str

    def __new__(cls, value: str, description: str = "") -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.description = description
        return member

    GLOBAL = (
        "global",
        "u/Δ: every candidate by the most that one change moves any of them, anywhere.",
    )
    LOCAL = (
        "local",
        "Dampened: how many steps of the candidate's own δ(0), δ(1), ... cover |u|, with the sign "
        "of u. Best where the good candidates are those that one change hardly moves.",
    )
    FLATTENED = (
        "flattened",
        "Dampened by the largest δ(t) of all candidates, so that no two of them change places. "
        "Best where the largest δ of the dataset is far below Δ and the order of u matters.",
    )
    SHIFTED = (
        "shifted",
        "The limit of local when all utilities are moved far away from 0, in the public direction "
        "of the utility: (u - K)/Δ for +1 and (u + K)/Δ for -1, K the sum of Δ - δ(t). Best where "
        "δ itself grows (or falls) with u, for then it helps to tell candidates apart.",
    )


class SensitivityFunction(Protocol):
    """δ of all candidates together, in steps of the utility's grid; every value is at least 1."""

    @property
    def cap(self) -> int:
        """Δ: the public bound shared by all candidates, in grid steps."""
        ...

    @property
    def horizon(self) -> int:
        """T ≥ 1: from this public distance on, δ of every candidate equals the cap."""
        ...

    def at(self, t: int, candidates: Integers) -> Integers:
        """δ(t) of the candidates with these indices, in their shape; non-decreasing in t."""
        ...

    def largest(self, t: int) -> int:
        """The flattened δ(t), which is admissible as well: max over all candidates.

        In a weighted sum each member takes its own maximum, so that a step costs O(1).
        """
        ...

    def shortfall(self) -> Integers:
        """K(r) = Σ_{t < T} (cap − δ(t, r)), shape (n,), exactly and without a loop up to T."""
        ...

    def passed(self, goals: Integers) -> Integers:
        """How far δ covers a goal g ≥ 0 for each candidate, int64 (3, n).

        The first row is the number of steps δ(0) + δ(1) + … that are passed in full. The others
        are the rest and the width of the final step. 0 < rest ≤ width unless g = 0, or all T
        steps are passed: further steps of that width cover the rest.
        """
        ...

    def passed_by_largest(self, goals: Integers) -> Integers:
        """The same with one sequence for all: the flattened δ."""
        ...
