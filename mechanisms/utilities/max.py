"""Max: the records that an attribute classifies correctly, each level by its commonest class."""

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np

from mechanisms.model.domains import Dataset, NeighbouringRelation
from mechanisms.model.facts import (
    BOTH_WAYS,
    ByRelation,
    JointByRelation,
    JointFacts,
    SensitivityFacts,
    same_for_all,
)
from mechanisms.model.sensitivity import Integers, Sensitivity
from mechanisms.utilities.criterion import Criterion
from mechanisms.utilities.tables import TABLE_RELATIONS, sums_by_table
from mechanisms.utilities.utility import Grid, Measurement


class Max(Criterion):
    """u(A) = Σ_j max_c τ_jc; Δ = δ = 1.

    A replacement removes at most one such record and adds at most one.
    """

    name = "max"
    title = "Max"
    description = "How many records have the commonest class of their level."
    source = "Friedman and Schuster, KDD 2010, section 4."
    sensitivity_facts: ClassVar[ByRelation] = dict.fromkeys(
        TABLE_RELATIONS,
        SensitivityFacts(
            cap="1",
            function="1",
            horizon="1",
            terms="a replacement takes one away at most and adds one at most",
        ),
    )

    joint_facts: ClassVar[JointByRelation] = {
        NeighbouringRelation.ADD_REMOVE: same_for_all(
            JointFacts(spread="j", total="n", squares="n", one_way="up")
        ),
        NeighbouringRelation.REPLACE: same_for_all(BOTH_WAYS),
    }

    def one_way(
        self, relation: NeighbouringRelation, sensitivity: Sensitivity
    ) -> Literal[-1, 0, 1]:
        # The sensitivity function δ is constant, so all forms of sensitivity give the same scores.
        return 1 if relation is NeighbouringRelation.ADD_REMOVE else 0

    def table_grid(self, rows: int) -> Grid:
        return Grid(bits=0, cap=1, horizon=1, largest=rows)

    def of_tables(
        self, tables: Sequence[Integers], dataset: Dataset, sensitivity: Sensitivity, grid: Grid
    ) -> Measurement:
        utilities = sums_by_table(np.concatenate(tables).max(axis=1), tables)
        return Measurement.constant(utilities, grid)
