"""Information gain and Gini: u adds up over levels; ``kernels.impurity`` defines their δ."""

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Self

import numpy as np

from mechanisms.kernels import impurity
from mechanisms.kernels.radix import ascending
from mechanisms.kernels.rarest_class import RarestPairs
from mechanisms.model.domains import Dataset, NeighbouringRelation
from mechanisms.model.sensitivity import Integers, Sensitivity
from mechanisms.utilities.criterion import Criterion
from mechanisms.utilities.tables import sums_by_table
from mechanisms.utilities.utility import Grid, Measurement

#: Explains the letters b and m in the formulas for the sensitivity function δ that the catalogue
#: shows. This b is β of ``kernels.rarest_class``.
LEVEL_TERMS = (
    "b: one less than the records of a level's rarest class, at least 0; m: the level's records "
    "of all other classes"
)
#: An empty table of entropy sums. Gini impurity needs none, and kernels recognize Gini by the
#: length 0 of this table.
NO_SUMS = np.zeros(0, dtype=np.int64)


class ImpuritySensitivity(impurity.Curve):
    """δ(t) = min(Δ, max over a candidate's pairs of c(M(t), Q(t))), with c of ``kernels.impurity``.

    It is admissible: c grows with m and falls with β, the two counts of a pair. One record moves
    either count by at most one, and a replacement both.

    Implements ``SensitivityFunction``.
    """

    def at(self, t: int, candidates: Integers) -> Integers:
        return impurity.steps(self, t, candidates)

    def largest(self, t: int) -> int:
        return int(self._merged.at(t, np.zeros(1, dtype=np.int64))[0])

    @cached_property
    def _merged(self) -> Self:
        pairs = RarestPairs(self.offsets, self.others, self.rarest).merged()
        return self._replace(**pairs._asdict())

    def shortfall(self) -> Integers:
        return impurity.shortfalls(self)

    def passed(self, goals: Integers) -> Integers:
        return impurity.walk(self, goals, ascending(goals))

    def passed_by_largest(self, goals: Integers) -> Integers:
        return self._merged.passed(goals)


class Impurity(Criterion):
    """A criterion whose u is a sum over levels; δ depends on the rarest class of each level."""

    @abstractmethod
    def levels(self, rows: Integers, sums: Integers, bits: int) -> Integers:
        """The part of u from each level, in steps of 2^−``bits``.

        Args:
            rows: class counts τ_c of each level, int64 (levels, classes).
            sums: as in ``kernels.impurity.Curve``.
        """

    def prepared(self, dataset: Dataset, grid: Grid) -> Integers:
        return NO_SUMS

    def of_tables(
        self, tables: Sequence[Integers], dataset: Dataset, sensitivity: Sensitivity, grid: Grid
    ) -> Measurement:
        sums = self.prepared(dataset, grid)
        utilities = sums_by_table(self.levels(np.concatenate(tables), sums, grid.bits), tables)
        if sensitivity is Sensitivity.GLOBAL:
            return Measurement.constant(utilities, grid)
        return Measurement(
            utilities,
            ImpuritySensitivity(
                *RarestPairs.of(tables),
                sums=sums,
                bits=grid.bits,
                replace=dataset.neighbouring is NeighbouringRelation.REPLACE,
                cap=grid.cap,
                horizon=grid.horizon,
            ),
        )
