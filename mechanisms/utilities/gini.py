"""Gini: the impurity of the class that an attribute leaves, times the records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np

from mechanisms.candidates import Candidates
from mechanisms.domains import Dataset, NeighbouringRelation
from mechanisms.facts import ByRelation, SensitivityFacts
from mechanisms.long_division import scaled_floor
from mechanisms.records import Records
from mechanisms.sensitivity import ConstantSensitivity, Integers, Sensitivity
from mechanisms.utilities.impurity import NO_SUMS, ImpuritySensitivity
from mechanisms.utilities.rarest_class import LEVEL_TERMS, RarestPairs
from mechanisms.utilities.tables import (
    TABLE_RELATIONS,
    attribute_candidates,
    attribute_tables,
    finest_table_bits,
    row_bound,
    sums_by_table,
)
from mechanisms.utilities.utility import Grid, Measured

FINEST = 32


class Gini:
    """u(A) = −Σ_j (τ_j − Σ_c τ_jc² / τ_j); Δ = 2 − 2/N, empty levels count nothing.

    Each level is rounded by itself: a record moves one level, a replacement two in opposite
    directions. δ = max over levels of 2M²/((M + Q)(M + Q + 1)), see ``rarest_class``.
    """

    name = "gini"
    title = "Gini index"
    description = "How pure the class is within the levels of an attribute, summed over records."
    source = "Friedman and Schuster, KDD 2010, section 4; Δ and δ from the exact change of a cell."
    candidates = "attributes"
    relations = TABLE_RELATIONS
    #: Purer splits have the larger δ: a rarest class of few records.
    direction: Literal[1, -1] = 1
    sensitivity_facts: ClassVar[ByRelation] = {
        NeighbouringRelation.ADD_REMOVE: SensitivityFacts(
            cap="2 - 2/N",
            function=(
                "max over levels of 2M^2 / ((M + Q)(M + Q + 1)), M = m + t - i, Q = b - i, "
                "i = min(t, b)"
            ),
            horizon="N",
            terms=f"N: max_rows; {LEVEL_TERMS}",
        ),
        NeighbouringRelation.REPLACE: SensitivityFacts(
            cap="2 - 2/N",
            function=(
                "max over levels of 2M^2 / ((M + Q)(M + Q + 1)), M = m + t, Q = max(b - t, 0)"
            ),
            horizon="N",
            terms=f"N: rows; {LEVEL_TERMS}",
        ),
    }

    def grid(
        self,
        dataset: Dataset,
        candidates: Candidates,
        sensitivity: Sensitivity,  # noqa: ARG002 - sums up to T are as large as utilities
    ) -> Grid:
        attribute_candidates(candidates).count(dataset)
        return self.table_grid(row_bound(dataset))

    def table_grid(self, rows: int) -> Grid:
        """The grid for at most ``rows`` rows, whatever the attributes."""
        bits = finest_table_bits(2 * rows, FINEST)
        cap = -(-(rows - 1 << bits + 1) // rows)
        return Grid(bits=bits, cap=max(cap, 1), horizon=rows, largest=rows << bits)

    def measure(
        self,
        records: Records,
        dataset: Dataset,
        candidates: Candidates,
        sensitivity: Sensitivity,
        grid: Grid,
    ) -> Measured:
        tables = attribute_tables(records, dataset, candidates)
        return self.of_tables(tables, dataset, sensitivity, grid)

    def of_tables(
        self, tables: Sequence[Integers], dataset: Dataset, sensitivity: Sensitivity, grid: Grid
    ) -> Measured:
        """u and δ of candidates known by their level × class counts, int64 each."""
        utilities = sums_by_table(_level_utilities(np.concatenate(tables), grid.bits), tables)
        if sensitivity is Sensitivity.GLOBAL:
            return Measured(utilities, ConstantSensitivity(grid.cap, len(tables), grid.horizon))
        return Measured(
            utilities,
            ImpuritySensitivity(
                pairs=RarestPairs.of(tables),
                sums=NO_SUMS,
                bits=grid.bits,
                replace=dataset.neighbouring is NeighbouringRelation.REPLACE,
                cap=grid.cap,
                horizon=grid.horizon,
            ),
        )


def _level_utilities(rows: Integers, bits: int) -> Integers:
    """−⌈2^bits · (τ² − Σ_c τ_c²) / τ⌉ of every row of class counts."""
    totals = rows.sum(axis=1)
    differ = totals * totals - (rows * rows).sum(axis=1)
    return scaled_floor(-differ, np.maximum(totals, 1), bits)
