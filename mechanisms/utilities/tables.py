"""What the utilities of tables share: the public bound on rows, the columns, the grid."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mechanisms.kernels.contingency import contingency_tables
from mechanisms.kernels.long_division import LIMIT
from mechanisms.model.candidates import Candidates
from mechanisms.model.domains import Dataset, NeighbouringRelation
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.executor import Executor
from mechanisms.model.records import Records, TableRecords
from mechanisms.model.sensitivity import Integers
from mechanisms.model.table_candidates import Attributes, Trees, ValuesOf, table_domain

TABLE_RELATIONS = frozenset({NeighbouringRelation.ADD_REMOVE, NeighbouringRelation.REPLACE})

#: Squares of twice a count stay below 2⁶⁰.
LARGEST_BOUND = 1 << 29


def row_bound(dataset: Dataset) -> int:
    """N: a public bound on the number of rows, which a ``replace`` table has exactly."""
    domain = table_domain(dataset)
    if dataset.neighbouring not in TABLE_RELATIONS:
        raise UnsupportedQuery(
            "this utility needs a relation of tables",
            supported={"neighbouring": sorted(TABLE_RELATIONS)},
        )
    replaced = dataset.neighbouring is NeighbouringRelation.REPLACE
    rows = domain.rows if replaced else domain.max_rows
    if rows is None:
        raise UnsupportedQuery(f"{'rows' if replaced else 'max_rows'} is not fixed yet")
    if rows > LARGEST_BOUND:
        raise UnsupportedQuery(
            "utilities of tables are exact up to a public bound on the rows",
            supported={"rows": LARGEST_BOUND},
        )
    return max(rows, 1)


def finest_table_bits(units: int, most: int) -> int:
    """The largest g ≤ ``most`` with units · 2^g < 2⁶²; UnsupportedQuery when no g ≥ 1 fits.

    ``units`` is a public bound on utilities and on the sums of δ that will be formed.
    """
    bits = min(most, LIMIT.bit_length() - 1 - units.bit_length())
    if bits < 1:
        raise UnsupportedQuery("the public bound on rows is too large for exact arithmetic")
    return bits


def sums_by_table(levels: Integers, tables: Sequence[Integers]) -> Integers:
    """The sum over the levels of each table, int64 (tables,); every table has a level."""
    starts = np.cumsum([0, *(len(table) for table in tables[:-1])])
    sums: Integers = np.add.reduceat(levels, starts).astype(np.int64)
    return sums


def table_records(records: Records) -> TableRecords:
    if not isinstance(records, TableRecords):
        raise TypeError("the utilities of tables are measured on table records")
    return records


def attribute_candidates(candidates: Candidates) -> Attributes:
    if not isinstance(candidates, Attributes):
        raise UnsupportedQuery(
            "this utility is of attributes", supported={"candidates": "attributes"}
        )
    return candidates


def value_candidates(candidates: Candidates) -> ValuesOf:
    if not isinstance(candidates, ValuesOf):
        raise UnsupportedQuery("this utility is of values", supported={"candidates": "values_of"})
    return candidates


def tree_candidates(candidates: Candidates) -> Trees:
    if not isinstance(candidates, Trees):
        raise UnsupportedQuery("this utility is of trees", supported={"candidates": "trees"})
    return candidates


def attribute_tables(
    records: Records, dataset: Dataset, candidates: Candidates, executor: Executor | None = None
) -> list[Integers]:
    """Level × class counts of each candidate, int64; every public level has its row."""
    chosen = attribute_candidates(candidates)
    codes = table_records(records).codes
    classes = chosen.classes(dataset)
    columns = [(codes[a.name], len(a.levels)) for a in chosen.attributes(dataset)]
    return contingency_tables(columns, (codes[classes.name], len(classes.levels)), executor)
