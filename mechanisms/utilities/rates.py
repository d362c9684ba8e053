"""What the true positive and the true negative rate of public trees share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal

import numpy as np

from mechanisms.kernels.forests import Confusion, confusion
from mechanisms.kernels.long_division import scaled_floor
from mechanisms.model.candidates import Candidates
from mechanisms.model.domains import Dataset, NeighbouringRelation
from mechanisms.model.records import Records
from mechanisms.model.sensitivity import ConstantSensitivity, Integers, Sensitivity
from mechanisms.utilities.rate_sensitivity import RateSensitivity
from mechanisms.utilities.tables import (
    TABLE_RELATIONS,
    finest_table_bits,
    row_bound,
    table_records,
    tree_candidates,
)
from mechanisms.utilities.utility import Grid, Measured

FINEST = 32


class Rate(ABC):
    """u = hits/total, 1/2 where total = 0. Δ = 1/2 under add/remove, 1 under replace."""

    name: str
    candidates = "trees"
    relations = TABLE_RELATIONS
    #: A better tree has fewer misses and, from one half on, the larger δ.
    direction: Literal[1, -1] = 1

    @abstractmethod
    def counted(self, found: Confusion) -> tuple[Integers, int]:
        """The hits of each tree, and the records they could have hit."""

    def exclusive(self, dataset: Dataset) -> tuple[str, str] | None:
        """A record that comes or goes is of one class and moves one rate; one replaced, both."""
        if dataset.neighbouring is not NeighbouringRelation.ADD_REMOVE:
            return None
        return "the class of a record", self.name

    def grid(
        self,
        dataset: Dataset,
        candidates: Candidates,
        sensitivity: Sensitivity,  # noqa: ARG002 - sums up to T are as large as N utilities
    ) -> Grid:
        tree_candidates(candidates).count(dataset)
        return self.rate_grid(dataset)

    def rate_grid(self, dataset: Dataset) -> Grid:
        """The grid over a table, whatever the trees."""
        rows = row_bound(dataset)
        # δ falls to 1/(2N): steps of a hundredth of 1/N, or rounding up would swallow it.
        bits = finest_table_bits(rows + 1, max(FINEST, (100 * rows).bit_length()))
        replaced = dataset.neighbouring is NeighbouringRelation.REPLACE
        return Grid(
            bits=bits,
            cap=1 << bits if replaced else 1 << bits - 1,
            horizon=rows if replaced else rows + 1,
            largest=1 << bits,
        )

    def measure(
        self,
        records: Records,
        dataset: Dataset,
        candidates: Candidates,
        sensitivity: Sensitivity,
        grid: Grid,
    ) -> Measured:
        found = confusion(table_records(records), tree_candidates(candidates).forest(dataset))
        hits, total = self.counted(found)
        return self.of_counts(hits, np.full(hits.shape, total), dataset, sensitivity, grid)

    def of_counts(
        self,
        hits: Integers,
        totals: Integers,
        dataset: Dataset,
        sensitivity: Sensitivity,
        grid: Grid,
    ) -> Measured:
        """u and δ of candidates known by their hits among ``totals`` records, int64 (n,)."""
        empty = totals == 0
        utilities = scaled_floor(np.where(empty, 1, hits), np.where(empty, 2, totals), grid.bits)
        if sensitivity is Sensitivity.GLOBAL:
            constant = ConstantSensitivity(grid.cap, hits.size, grid.horizon)
            return Measured(utilities, constant)
        replaced = dataset.neighbouring is NeighbouringRelation.REPLACE
        delta = RateSensitivity.of_one(hits, totals, grid.bits, replaced, grid.cap, grid.horizon)
        return Measured(utilities, delta)
