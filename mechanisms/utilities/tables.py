"""The common part of utilities of tables: the public bound on rows, the candidates, the counts."""

from collections.abc import Sequence

import numpy as np

from mechanisms.kernels.level_counts import counts_by_levels
from mechanisms.model.candidates import Candidates
from mechanisms.model.domains import Dataset, NeighbouringRelation
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.executor import Executor, Inline
from mechanisms.model.level_tables import rows_read
from mechanisms.model.records import Records, TableRecords, records_of
from mechanisms.model.sensitivity import Integers
from mechanisms.model.table_candidates import Attributes, Trees, ValuesOf, table_domain
from mechanisms.model.work import Work, work

TABLE_RELATIONS = frozenset({NeighbouringRelation.ADD_REMOVE, NeighbouringRelation.REPLACE})

#: The largest public bound on rows. Kernels square sums of two counts in 64 bits. With this bound
#: the squares are at most 2⁶⁰, so that a few of them can be added.
LARGEST_BOUND = 1 << 29
#: The error message where the public bound on rows is so large that sums of a utility would leave
#: 64 bits on every grid.
ROWS = "the public bound on rows is too large for exact arithmetic"


def row_bound(dataset: Dataset) -> int:
    """N: the public bound on the number of rows, or their exact number under ``replace``.

    Raises: UnsupportedQuery for other datasets and relations, and above ``LARGEST_BOUND``.
    """
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


def sums_by_table(levels: Integers, tables: Sequence[Integers]) -> Integers:
    """The sum over the levels of each table, int64 (tables,); every table has a level."""
    starts = np.cumsum([0, *(len(table) for table in tables[:-1])])
    sums: Integers = np.add.reduceat(levels, starts).astype(np.int64)
    return sums


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
    classes = chosen.classes(dataset)
    sizes = {one.name: len(one.levels) for one in (*chosen.attributes(dataset), classes)}
    names = [(name, classes.name) for name in chosen.names]
    table = records_of(TableRecords, records)
    return counts_by_levels(table, names, sizes, executor or Inline())


def table_counting(dataset: Dataset, names: Sequence[str], classes: str, rows: int) -> Work:
    """The public work of ``attribute_tables``.

    A table that was counted at preparation is read cell by cell; any other is counted row by row.
    """
    read = sum(rows_read(dataset, (name, classes), rows) for name in names)
    return work("contingency", read, len(names))
