"""Information gain and Gini: u adds up over levels, δ is a maximum over pairs (m, β)."""

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
from mechanisms.utilities.utility import Grid, Measurement

#: Without Φ, the curve is that of Gini.
NO_SUMS = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class ImpuritySensitivity:
    """δ(t) = min(Δ, max over a candidate's pairs of c(M(t), Q(t))), with c of ``kernels.impurity``.

    ``sums`` is Φ[0 … N] for information gain and empty for Gini. ``replace`` is True for that
    relation. Admissible: c grows with m and falls with β. One record moves either by one, a
    replacement both.
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
        return impurity.steps(*self._curve(pairs), t, candidates)

    def shortfall(self) -> Integers:
        return impurity.shortfalls(*self._curve(self.pairs), self.horizon)

    def passed(self, goals: Integers) -> Integers:
        return self._passed(self.pairs, goals)

    def passed_by_largest(self, goals: Integers) -> Integers:
        return self._passed(self._merged, goals)

    def _passed(self, pairs: RarestPairs, goals: Integers) -> Integers:
        result = np.empty((3, goals.size), dtype=np.int64)
        order = np.argsort(goals, kind="stable")
        impurity.walk(*self._curve(pairs), self.horizon, goals, order, result)
        return result

    def _curve(
        self, pairs: RarestPairs
    ) -> tuple[Integers, int, bool, Integers, Integers, Integers, int]:
        """The arguments that all kernels of ``kernels.impurity`` begin with."""
        parts = pairs.offsets, pairs.others, pairs.rarest
        return (self.sums, self.bits, self.replace, *parts, self.cap)


class Impurity(Criterion):
    """A criterion whose u is a sum over levels; δ depends on the rarest class of each level."""

    @abstractmethod
    def levels(self, rows: Integers, sums: Integers, bits: int) -> Integers:
        """The part of u from each level, in steps of 2^−``bits``.

        Args:
            rows: class counts τ_c of each level, int64 (levels, classes).
            sums: as in ``ImpuritySensitivity``.
        """

    def prepared(self, dataset: Dataset, grid: Grid) -> Integers:
        return NO_SUMS

    def of_tables(
        self, tables: Sequence[Integers], dataset: Dataset, sensitivity: Sensitivity, grid: Grid
    ) -> Measurement:
        sums = self.prepared(dataset, grid)
        utilities = sums_by_table(self.levels(np.concatenate(tables), sums, grid.bits), tables)
        if sensitivity is Sensitivity.GLOBAL:
            return Measurement(utilities, ConstantSensitivity(grid.cap, len(tables), grid.horizon))
        return Measurement(
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
