"""What utilities of attributes share: all they read is how the class falls on each level."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal

from mechanisms.model.candidates import Candidates
from mechanisms.model.domains import Dataset
from mechanisms.model.records import Records
from mechanisms.model.sensitivity import Integers, Sensitivity
from mechanisms.utilities.tables import (
    TABLE_RELATIONS,
    attribute_candidates,
    attribute_tables,
    row_bound,
)
from mechanisms.utilities.utility import Grid, Measured


class Criterion(ABC):
    """A utility of attributes by their level × class counts. Implements ``Utility`` but for what
    names and explains it."""

    candidates = "attributes"
    relations = TABLE_RELATIONS
    #: Purer splits, with few records of a rarest class, have the larger δ, if not all have one.
    direction: Literal[1, -1] = 1

    @abstractmethod
    def table_grid(self, rows: int) -> Grid:
        """The grid for at most ``rows`` rows, whatever the attributes."""

    @abstractmethod
    def of_tables(
        self, tables: Sequence[Integers], dataset: Dataset, sensitivity: Sensitivity, grid: Grid
    ) -> Measured:
        """u and δ of candidates known by their level × class counts, int64 each."""

    def prepared(self, dataset: Dataset, grid: Grid) -> object:  # noqa: ARG002
        """What measuring reads besides counts: worth holding by who measures many times."""
        return None

    def grid(
        self,
        dataset: Dataset,
        candidates: Candidates,
        sensitivity: Sensitivity,  # noqa: ARG002 - sums up to T are as large as utilities
    ) -> Grid:
        attribute_candidates(candidates).count(dataset)
        return self.table_grid(row_bound(dataset))

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
