"""The sensitivity function δ: how much a candidate's utility may still move t changes away.

δ is *admissible* for a neighbouring relation when, for all neighbours x, y, candidates r, t ≥ 0,
    (A1) δ(x, 0, r) ≥ |u(x, r) − u(y, r)|   and   (A2) δ(x, t + 1, r) ≥ δ(y, t, r).
It lives on the integer grid of its utility: the guarantee is decided by whole numbers. The values
are private (they come from records); ``cap`` and ``horizon`` are public.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, Self, runtime_checkable

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
        "Dampened by the largest δ(t) of all candidates, so that no two of them change places; "
        "rarely far from global.",
    )
    SHIFTED = (
        "shifted",
        "The limit of local when all utilities are moved far away from 0, in the public direction "
        "of the utility: (u - K)/Δ for +1 and (u + K)/Δ for -1, K the sum of Δ - δ(t). Best where "
        "δ itself grows (or falls) with u, for then it helps to tell candidates apart.",
    )


class SensitivityFunction(Protocol):
    """δ for all candidates at once, in steps of the utility's grid, every value at least 1."""

    @property
    def cap(self) -> int:
        """Δ: the common public bound of all candidates, in grid steps."""
        ...

    @property
    def horizon(self) -> int:
        """T ≥ 1: from this public distance on δ equals the cap, for every candidate."""
        ...

    def at(self, t: int, candidates: Integers) -> Integers:
        """δ(t) of the candidates with these indices, in their shape; non-decreasing in t."""
        ...

    def largest(self, t: int) -> int:
        """max over all candidates of δ(t): the flattened δ, which is admissible too."""
        ...

    def shortfall(self) -> Integers:
        """K(r) = Σ_{t < T} (cap − δ(t, r)), shape (n,): exact, and never a loop up to T."""
        ...


@runtime_checkable
class WalkedSensitivity(SensitivityFunction, Protocol):
    """δ that walks its own steps in machine code: for horizons of very many of them.

    Both answer, for each goal g ≥ 0, three rows: how many steps δ(0) + δ(1) + … are passed in
    full, 0 < rest ≤ width unless g = 0, and the width of the step it ends in.
    """

    def passed(self, goals: Integers) -> Integers:
        """Goal i on the steps of candidate i, int64 (3, n)."""
        ...

    def passed_by_largest(self, goals: Integers) -> Integers:
        """All goals on the steps of the largest δ, int64 (3, n)."""
        ...


@dataclass(frozen=True)
class ConstantSensitivity:
    """δ ≡ Δ for ``count`` candidates: admissible for every utility; local dampening with it
    gives the scores of the global sensitivity."""

    cap: int
    count: int
    horizon: int = 1

    def at(self, t: int, candidates: Integers) -> Integers:  # noqa: ARG002 - the same at every t
        return np.full(candidates.shape, self.cap, dtype=np.int64)

    def largest(self, t: int) -> int:  # noqa: ARG002 - the same at every t
        return self.cap

    def shortfall(self) -> Integers:
        return np.zeros(self.count, dtype=np.int64)
