"""Counts of rows by the levels of one or of two attributes: stored ones, or counted from the rows.

Whether a table is stored follows from the public description. Records that were not opened from a
version, such as those of tests, store none, and then all tables are counted.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.columns import Column
from mechanisms.kernels.contingency import level_counts
from mechanisms.kernels.pairs import pair_tables
from mechanisms.model.domains import TableDomain
from mechanisms.model.executor import Executor
from mechanisms.model.level_tables import Names, stored_tables
from mechanisms.model.records import TableRecords

Counts = NDArray[np.int64]


def counts_by_levels(
    records: TableRecords, names: Sequence[Names], sizes: Mapping[str, int], executor: Executor
) -> list[Counts]:
    """The number of rows with each level, or each pair of levels: private, int64.

    Args:
        names: one or two attributes of each table, in the order of its axes.
        sizes: the public number of levels of each attribute.
    """
    stored = {one: stored_counts(records, one) for one in names}
    missing = [one for one, table in stored.items() if table is None]
    tables = stored | _counted(records, missing, sizes, executor)
    return [table for one in names if (table := tables[one]) is not None]


def all_level_tables(records: TableRecords, domain: TableDomain, executor: Executor) -> Counts:
    """All tables that a version stores, one after the other: private, int64."""
    names = list(stored_tables(domain))
    sizes = {
        name: size
        for one, shape in stored_tables(domain).items()
        for name, size in zip(one, shape, strict=True)
    }
    tables = counts_by_levels(records, names, sizes, executor)
    return np.concatenate([np.zeros(0, np.int64), *(table.ravel() for table in tables)])


def stored_counts(records: TableRecords, names: Names) -> Counts | None:
    """The stored table of these attributes, in the order of ``names``: private; None if there is
    none."""
    table = records.tables.get(names)
    if table is None and len(names) == 2:
        turned = records.tables.get(names[::-1])
        table = None if turned is None else turned.T
    # Returns a copy in row-major order, because kernels are compiled for that memory layout alone,
    # and because no caller may write to the stored table.
    return None if table is None else np.array(table, np.int64, order="C")


def _counted(
    records: TableRecords, names: Sequence[Names], sizes: Mapping[str, int], executor: Executor
) -> dict[Names, Counts]:
    pairs = [one for one in names if len(one) == 2]
    used = list(dict.fromkeys(name for pair in pairs for name in pair))
    columns: list[Column] = [(records.codes[name], sizes[name]) for name in used]
    places = [(used.index(first), used.index(second)) for first, second in pairs]
    tables: dict[Names, Counts] = {}
    if pairs:
        tables.update(zip(pairs, pair_tables(columns, places, executor), strict=True))
    for one in names:
        if len(one) == 1:
            tables[one] = level_counts(records.codes[one[0]], sizes[one[0]], executor)
    return tables
