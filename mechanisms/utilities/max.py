"""Max: how many records an attribute classifies rightly, each level by its commonest class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np

from mechanisms.candidates import Candidates
from mechanisms.domains import Dataset
from mechanisms.facts import ByRelation, SensitivityFacts
from mechanisms.records import Records
from mechanisms.sensitivity import ConstantSensitivity, Integers, Sensitivity
from mechanisms.utilities.tables import (
    TABLE_RELATIONS,
    attribute_candidates,
    attribute_tables,
    row_bound,
    sums_by_table,
)
from mechanisms.utilities.utility import Grid, Measured


class Max:
    """u(A) = Σ_j max_c τ_jc; Δ = δ = 1: a replacement takes one away at most and adds one."""

    name = "max"
    title = "Max"
    description = "How many records have the commonest class of their level."
    source = "Friedman and Schuster, KDD 2010, section 4."
    candidates = "attributes"
    relations = TABLE_RELATIONS
    direction: Literal[1, -1] = 1
    sensitivity_facts: ClassVar[ByRelation] = dict.fromkeys(
        TABLE_RELATIONS,
        SensitivityFacts(
            cap="1",
            function="1",
            horizon="1",
            terms="a replacement takes one away at most and adds one at most",
        ),
    )

    def grid(
        self,
        dataset: Dataset,
        candidates: Candidates,
        sensitivity: Sensitivity,  # noqa: ARG002 - the same grid for all
    ) -> Grid:
        attribute_candidates(candidates).count(dataset)
        return self.table_grid(row_bound(dataset))

    def table_grid(self, rows: int) -> Grid:
        """The grid for at most ``rows`` rows, whatever the attributes."""
        return Grid(bits=0, cap=1, horizon=1, largest=rows)

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
        self,
        tables: Sequence[Integers],
        dataset: Dataset,  # noqa: ARG002 - δ is the same under both relations
        sensitivity: Sensitivity,  # noqa: ARG002 - δ has one form
        grid: Grid,
    ) -> Measured:
        """u and δ of candidates known by their level × class counts, int64 each."""
        utilities = sums_by_table(np.concatenate(tables).max(axis=1), tables)
        return Measured(utilities, ConstantSensitivity(grid.cap, len(tables)))
