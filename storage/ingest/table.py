"""Turns the cells of a table into level codes and numbers, and refuses cells outside the domain."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.model.dates import DateAttribute
from mechanisms.model.domains import Attribute, NumericAttribute, TableDomain
from mechanisms.model.open_domain import OpenAttribute, OpenValues
from storage.errors import TooLarge
from storage.files.growing_array import GrowingArray, copy_of
from storage.ingest.batches import Batch
from storage.ingest.cells import FAULTS, code_cells
from storage.ingest.open_values import OpenColumn
from storage.ingest.persons import PersonCollector, RowSelection
from storage.ingest.refusals import WHOLE, Refusal, refuse, refuse_any


@dataclass(frozen=True)
class CodedTable:
    """Arrays of level codes by attribute, of numbers by numeric attribute, of days by date."""

    rows: int
    codes: dict[str, NDArray[Any]]
    values: dict[str, NDArray[np.float64]]
    days: dict[str, NDArray[np.int32]]
    #: For each row, the number of its person; rows are sorted by it. None in a table without
    #: persons.
    persons: NDArray[np.int32] | None = None
    open_values: dict[str, OpenValues] = field(default_factory=dict)


class RowCollector:
    """Checks rows batch by batch, and stores their codes in temporary files in ``scratch``.

    The first batch with a fault raises InvalidRecords. ``most_cells`` limits rows times columns.
    With ``persons`` only the rows that it keeps are in the result, and the bounds on rows are
    theirs. No refusal tells how many others there were.
    """

    def __init__(
        self,
        domain: TableDomain,
        most_cells: int,
        scratch: Path | None = None,
        persons: PersonCollector | None = None,
    ) -> None:
        self._domain, self._persons, self._scratch = domain, persons, scratch
        columns = len(domain.attributes) + (persons is not None)
        self._most_rows = most_cells // max(columns, 1)
        self._codes = {a.name: GrowingArray(scratch, _code_type(a)) for a in domain.attributes}
        self._values = {
            a.name: GrowingArray(scratch, np.float64)
            for a in domain.attributes
            if isinstance(a, NumericAttribute)
        }
        self._days = {
            a.name: GrowingArray(scratch, np.int32)
            for a in domain.attributes
            if isinstance(a, DateAttribute)
        }
        self._open = {
            a.name: OpenColumn(a) for a in domain.attributes if isinstance(a, OpenAttribute)
        }
        self._scratch = scratch
        self._rows = 0

    def add(self, batch: Batch) -> None:
        """Add the rows of a batch that has exactly the described columns.

        Raises: InvalidRecords for a cell outside its attribute's domain, or for more rows than the
            description allows; TooLarge for more cells than any upload may have.
        """
        self._check_most(batch)
        refusals: list[Refusal] = []
        if self._persons is not None:
            refusals += self._persons.add(batch)
        for attribute in self._domain.attributes:
            values = self._open.get(attribute.name)
            coded = code_cells(batch.columns[attribute.name], attribute, values)
            refusals += _refusals(batch, attribute, coded.faults)
            self._codes[attribute.name].append(coded.codes)
            if coded.values is not None:
                self._values[attribute.name].append(coded.values)
            if coded.days is not None:
                self._days[attribute.name].append(coded.days)
        refuse_any(refusals)
        self._rows += batch.rows

    def finish(self) -> CodedTable:
        """The table of all rows that are kept. Raises: InvalidRecords if there are too few."""
        codes, values, days = (
            {name: column.array() for name, column in columns.items()}
            for columns in (self._codes, self._values, self._days)
        )
        # Danger: which rows of a person are kept must not depend on rows of other persons, and the
        # codes of open values do. So no table has both persons and open attributes.
        open_values = {}
        for name, column in self._open.items():
            codes[name], open_values[name] = column.sorted(codes[name], self._scratch)
        table = CodedTable(self._rows, codes, values, days, open_values=open_values)
        if self._persons is not None:
            contents = [*codes.values(), *values.values(), *days.values()]
            table = self._of_rows(table, self._persons.select(contents))
        fewest, most = self._fewest(), self._domain.max_rows
        if table.rows < fewest:
            refuse(WHOLE, "rows", f"fewer rows than the {fewest} of the description")
        if most is not None and table.rows > most:
            refuse(WHOLE, "rows", f"more kept rows than the {most} described")
        return table

    def _of_rows(self, table: CodedTable, selection: RowSelection) -> CodedTable:
        """The kept rows of a table, in new files."""
        codes, values, days = (
            {
                name: copy_of(column, selection.rows, self._scratch)
                for name, column in columns.items()
            }
            for columns in (table.codes, table.values, table.days)
        )
        return CodedTable(len(selection.rows), codes, values, days, selection.persons)

    def _fewest(self) -> int:
        if self._domain.rows is not None:
            return self._domain.rows
        # Without a bound in the description, the first upload fixes the number of rows permanently.
        # An empty upload would fix it at 0, so at least one row is required.
        return max(self._domain.min_rows, 1 if self._domain.max_rows is None else 0)

    def _check_most(self, batch: Batch) -> None:
        described = self._domain.max_rows if self._domain.rows is None else self._domain.rows
        rows = self._rows + batch.rows
        # In a table with persons only a public number of rows per person is kept, and the bound is
        # on the kept rows. They are chosen after all rows were read, so they cannot be counted
        # here.
        if self._persons is None and described is not None and rows > described:
            reason = "rows", f"more rows than the {described} described"
            refuse(*batch.numbering.refusal(described - self._rows, *reason))
        if rows > self._most_rows:
            raise TooLarge(f"an upload of this width may have at most {self._most_rows} rows")


def _refusals(batch: Batch, attribute: Attribute, faults: NDArray[np.int8]) -> Iterator[Refusal]:
    for fault, described in FAULTS.items():
        yield from batch.numbering.refusals(faults == fault, *described, attribute.name)


def _code_type(attribute: Attribute) -> np.dtype[Any]:
    """The smallest type that holds all level codes, among the types that kernels accept."""
    if isinstance(attribute, OpenAttribute):
        return np.dtype(np.int32)
    levels = len(attribute.levels)
    small = np.uint8 if levels <= 2**8 else np.uint16
    return np.dtype(small if levels <= 2**16 else np.int32)
