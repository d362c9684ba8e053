"""Information gain: how much an attribute says about the class, in bits times records.

For a fixed class attribute, gain and mutual information differ from −τ·H(C|A) by what no choice
of the attribute changes. One implementation serves both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np

from mechanisms.candidates import Candidates
from mechanisms.domains import Dataset, NeighbouringRelation
from mechanisms.facts import ByRelation, SensitivityFacts
from mechanisms.records import Records
from mechanisms.sensitivity import ConstantSensitivity, Integers, Sensitivity
from mechanisms.utilities.entropy_table import (
    FINEST,
    check_rows,
    entropy_sums,
    increments,
)
from mechanisms.utilities.impurity import ImpuritySensitivity
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


class InformationGain:
    """u(A) = Σ_j [Σ_c φ(τ_jc) − φ(τ_j)] = −τ·H(C|A), φ(x) = x·log₂x; Δ = ψ(N − 1).

    j runs over the public levels of A, c over those of the class, empty cells included. N is the
    public bound on rows (add/remove) or their public number (replace); T = N. At a node of a
    decision tree the counts are those of its records and N stays the same.
    """

    name = "information_gain"
    title = "Information gain"
    description = "How many bits of the class an attribute tells, summed over the records."
    source = (
        "Local Dampening, PVLDB 14(4), 2021, section 5.2, with the sign of equation 2 put right "
        "and δ without the guard of Algorithm 3, which is not admissible."
    )
    candidates = "attributes"
    relations = TABLE_RELATIONS
    #: Purer splits have the larger δ: a rarest class of few records.
    direction: Literal[1, -1] = 1
    sensitivity_facts: ClassVar[ByRelation] = {
        NeighbouringRelation.ADD_REMOVE: SensitivityFacts(
            cap="psi(N - 1), psi(x) = (x + 1) log2(x + 1) - x log2(x)",
            function="max over levels of psi(m + b + t - 2i) - psi(b - i), i = min(t, b)",
            horizon="N",
            terms=f"N: max_rows; {LEVEL_TERMS}",
        ),
        NeighbouringRelation.REPLACE: SensitivityFacts(
            cap="psi(N - 1), psi(x) = (x + 1) log2(x + 1) - x log2(x)",
            function="max over levels of psi(m + t + q) - psi(q), q = max(b - t, 0)",
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
        check_rows(rows)
        # ψ(N − 1) < log₂N + 3/2, and Φ[N] and all sums up to T = N are below N times that.
        bits = finest_table_bits(rows * (rows.bit_length() + 2), FINEST)
        cap = int(increments(rows - 1, rows, bits)[0])
        return Grid(bits=bits, cap=max(cap, 1), horizon=rows, largest=rows * cap)

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

    def prepared(self, dataset: Dataset, grid: Grid) -> object:
        """What measuring reads besides counts: worth holding by who measures many times."""
        return entropy_sums(row_bound(dataset), grid.bits)

    def of_tables(
        self, tables: Sequence[Integers], dataset: Dataset, sensitivity: Sensitivity, grid: Grid
    ) -> Measured:
        """u and δ of candidates known by their level × class counts, int64 each."""
        sums = entropy_sums(row_bound(dataset), grid.bits)
        rows = np.concatenate(tables)
        levels = sums[rows].sum(axis=1) - sums[rows.sum(axis=1)]
        utilities = sums_by_table(levels, tables)
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


class MutualInformation(InformationGain):
    """N·I(A; C) up to N·H(C), which is the same for every attribute: the same order of merit."""

    name = "mutual_information"
    title = "Mutual information"
    description = (
        "The mutual information of an attribute and the class, up to what is equal for all "
        "attributes: the same selection as by information gain."
    )
    source = (
        "Differentially private distance learning in categorical data, DAMI 2021, section 4.3, "
        "with the exact sensitivity; δ as for information gain."
    )
