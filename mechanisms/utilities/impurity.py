"""Information gain and Gini: u adds up over levels, δ runs over pairs (m, β) of all candidates."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mechanisms.kernels import impurity
from mechanisms.model.domains import Dataset, NeighbouringRelation
from mechanisms.model.sensitivity import ConstantSensitivity, Integers, Sensitivity
from mechanisms.utilities.criterion import Criterion
from mechanisms.utilities.rarest_class import RarestPairs
from mechanisms.utilities.tables import sums_by_table
from mechanisms.utilities.utility import Grid, Measured

#: No Φ: the curve is that of Gini.
NO_SUMS = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class ImpuritySensitivity:
    """δ(t) = min(Δ, max over a candidate's pairs of c(M(t), Q(t))), as ``impurity_kernels`` has it.

    ``sums`` is Φ[0 … N] for information gain, empty for Gini; ``replace`` says which relation.
    Admissible: c grows with m and falls with β, which one record moves by one, a replacement both.
    """

    pairs: RarestPairs
    sums: Integers
    bits: int
    replace: bool
    cap: int
    horizon: int

    def at(self, t: int, candidates: Integers) -> Integers:
        return self._steps(self.pairs, t, candidates)

    def largest(self, t: int) -> int:
        return int(self._steps(self._merged, t, np.zeros(1, dtype=np.int64))[0])

    @cached_property
    def _merged(self) -> RarestPairs:
        return self.pairs.merged()

    def _steps(self, pairs: RarestPairs, t: int, candidates: Integers) -> Integers:
        return impurity.steps(
            self.sums,
            self.bits,
            self.replace,
            pairs.offsets,
            pairs.others,
            pairs.rarest,
            self.cap,
            t,
            candidates,
        )

    def shortfall(self) -> Integers:
        return impurity.shortfalls(
            self.sums,
            self.bits,
            self.replace,
            self.pairs.offsets,
            self.pairs.others,
            self.pairs.rarest,
            self.cap,
            self.horizon,
        )

    def passed(self, goals: Integers) -> Integers:
        return self._passed(self.pairs, goals)

    def passed_by_largest(self, goals: Integers) -> Integers:
        return self._passed(self._merged, goals)

    def _passed(self, pairs: RarestPairs, goals: Integers) -> Integers:
        found = np.empty((3, goals.size), dtype=np.int64)
        impurity.walk(
            self.sums,
            self.bits,
            self.replace,
            pairs.offsets,
            pairs.others,
            pairs.rarest,
            self.cap,
            self.horizon,
            goals,
            np.argsort(goals, kind="stable"),
            found,
        )
        return found


class Impurity(Criterion):
    """u is a sum over the levels of an attribute, and δ that of their rarest classes."""

    @abstractmethod
    def levels(self, rows: Integers, sums: Integers, bits: int) -> Integers:
        """What each level adds to u, in steps of 2^−``bits``: of rows of class counts τ_c, int64
        (rows, classes), with τ their sum, and of ``sums`` as in ``ImpuritySensitivity``."""

    def prepared(self, dataset: Dataset, grid: Grid) -> Integers:  # noqa: ARG002
        return NO_SUMS

    def of_tables(
        self, tables: Sequence[Integers], dataset: Dataset, sensitivity: Sensitivity, grid: Grid
    ) -> Measured:
        sums = self.prepared(dataset, grid)
        utilities = sums_by_table(self.levels(np.concatenate(tables), sums, grid.bits), tables)
        if sensitivity is Sensitivity.GLOBAL:
            return Measured(utilities, ConstantSensitivity(grid.cap, len(tables), grid.horizon))
        return Measured(
            utilities,
            ImpuritySensitivity(
                pairs=RarestPairs.of(tables),
                sums=sums,
                bits=grid.bits,
                replace=dataset.neighbouring is NeighbouringRelation.REPLACE,
                cap=grid.cap,
                horizon=grid.horizon,
            ),
        )
