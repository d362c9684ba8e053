"""The count of a value: how many records have it."""

from __future__ import annotations

from typing import ClassVar, Literal

from mechanisms.kernels.contingency import level_counts
from mechanisms.model.candidates import Candidates
from mechanisms.model.domains import Dataset
from mechanisms.model.facts import ByRelation, SensitivityFacts
from mechanisms.model.records import Records
from mechanisms.model.sensitivity import ConstantSensitivity, Sensitivity
from mechanisms.utilities.tables import (
    TABLE_RELATIONS,
    row_bound,
    table_records,
    value_candidates,
)
from mechanisms.utilities.utility import Grid, Measured


class Count:
    """u(v) = the number of records with value v; Δ = δ = 1, for a replacement moves two counts
    by one each."""

    name = "count"
    title = "Count"
    description = "The number of records with a value."
    source = "One record changes one count by one."
    candidates = "values"
    relations = TABLE_RELATIONS
    direction: Literal[1, -1] = 1
    sensitivity_facts: ClassVar[ByRelation] = dict.fromkeys(
        TABLE_RELATIONS,
        SensitivityFacts(
            cap="1", function="1", horizon="1", terms="a replacement moves two counts by one each"
        ),
    )

    def grid(
        self,
        dataset: Dataset,
        candidates: Candidates,
        sensitivity: Sensitivity,  # noqa: ARG002 - the same grid for all
    ) -> Grid:
        value_candidates(candidates).count(dataset)
        return Grid(bits=0, cap=1, horizon=1, largest=row_bound(dataset))

    def measure(
        self,
        records: Records,
        dataset: Dataset,
        candidates: Candidates,
        sensitivity: Sensitivity,  # noqa: ARG002 - δ has one form
        grid: Grid,
    ) -> Measured:
        levels = candidates.count(dataset)
        codes = table_records(records).codes[value_candidates(candidates).attribute]
        return Measured(level_counts(codes, levels), ConstantSensitivity(grid.cap, levels))
