"""Which tables of counts every version stores: rows by the levels of one or of two attributes.

The list follows from the public description alone, so it is public which queries read a stored
table in place of the rows. The counts are private.
"""

from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.model.dates import DateAttribute
from mechanisms.model.domains import Dataset, NumericAttribute, TableDomain
from mechanisms.model.open_domain import OpenAttribute
from mechanisms.model.records import TableRecords

#: The names of the one or two attributes of a stored table of counts, in the order of the
#: description.
Names = tuple[str, ...]
#: Danger: these numbers decide which tables of counts are stored with the records of a dataset. If
#: they change, tables that were stored before do not fit any more. The first is the most cells of
#: one table, the second the most tables. ``level_cells`` of a dataset's description bounds the
#: cells of all its tables together.
TABLE_CELLS, MOST_TABLES = 1 << 16, 512


@lru_cache(maxsize=256)
def stored_tables(domain: TableDomain) -> Mapping[Names, tuple[int, ...]]:
    """The stored tables of a description with their shapes, in the order in which they are stored.

    First those of one attribute, then pairs with the class attribute, then other pairs, each from
    the smallest on, as far as all bounds allow.
    """
    chosen: dict[Names, tuple[int, ...]] = {}
    remaining = domain.level_cells
    for names, shape in sorted(_candidates(domain), key=lambda one: _rank(domain, *one)):
        cells = prod(shape)
        if cells > min(TABLE_CELLS, remaining) or len(chosen) == MOST_TABLES:
            continue
        chosen[names] = shape
        remaining -= cells
    return chosen


def stored_table(dataset: Dataset, names: Collection[str]) -> Names | None:
    """The smallest stored table that has all these attributes; None if there is none."""
    if not isinstance(dataset.domain, TableDomain) or len(names) > 2:
        return None
    return _smallest(dataset.domain).get(frozenset(names))


def rows_read(dataset: Dataset, names: Collection[str], rows: int) -> int:
    """The public number of rows that a count by these attributes reads, or of cells."""
    table = stored_table(dataset, names)
    if table is None:
        return rows
    assert isinstance(dataset.domain, TableDomain)
    return prod(stored_tables(dataset.domain)[table])


def split(flat: NDArray[np.int64], domain: TableDomain) -> dict[Names, NDArray[np.int64]]:
    """The tables by their attributes, out of one array that holds them one after the other.

    Raises: ValueError if the array has another length.
    """
    tables, start = {}, 0
    for names, shape in stored_tables(domain).items():
        end = start + prod(shape)
        tables[names] = flat[start:end].reshape(shape)
        start = end
    if start != len(flat):
        raise ValueError("the stored tables do not fit the description")
    return tables


def cells_as_rows(dataset: Dataset, names: Names) -> TableRecords:
    """A table of which every cell of a stored table is one row; public.

    Numbers and dates are the first ones of their bins.
    """
    assert isinstance(dataset.domain, TableDomain)
    shape = stored_tables(dataset.domain)[names]
    codes: dict[str, NDArray[Any]] = {}
    values: dict[str, NDArray[np.float64]] = {}
    days: dict[str, NDArray[np.int32]] = {}
    for axis, (name, size) in enumerate(zip(names, shape, strict=True)):
        small = np.uint8 if size <= 1 << 8 else np.uint16
        places = np.arange(size).reshape([-1 if i == axis else 1 for i in range(len(shape))])
        codes[name] = np.broadcast_to(places, shape).astype(small).ravel()
        attribute = dataset.domain.attribute(name)
        # Each cell of the table becomes one record, with the first number or day of its bin. So the
        # conditions of queries read cells as they read records. The last bin is that of missing
        # values: no condition reads its number, so any number may stand there.
        if isinstance(attribute, NumericAttribute):
            values[name] = np.resize(attribute.edges[:-1], size)[codes[name]]
        elif isinstance(attribute, DateAttribute):
            days[name] = np.resize(attribute.starts, size)[codes[name]]
    for column in (*codes.values(), *values.values(), *days.values()):
        # The columns are made read-only, like those of records, because kernels would be compiled
        # anew for arrays that can be written.
        column.flags.writeable = False
    return TableRecords(codes, values, days=days)


@lru_cache(maxsize=256)
def _smallest(domain: TableDomain) -> Mapping[frozenset[str], Names]:
    """The smallest stored table for each set of attributes that some stored table has."""
    tables = stored_tables(domain)
    smallest: dict[frozenset[str], Names] = {}
    for names in sorted(tables, key=lambda one: prod(tables[one])):
        for size in range(len(names) + 1):
            for part in combinations(names, size):
                smallest.setdefault(frozenset(part), names)
    return smallest


def _candidates(domain: TableDomain) -> Iterator[tuple[Names, tuple[int, ...]]]:
    sizes = {
        one.name: len(one.levels) for one in domain.attributes if not isinstance(one, OpenAttribute)
    }
    for name, size in sizes.items():
        yield (name,), (size,)
    for first, second in combinations(sizes, 2):
        yield (first, second), (sizes[first], sizes[second])


def _rank(domain: TableDomain, names: Names, shape: tuple[int, ...]) -> tuple[int, bool, int]:
    return len(names), domain.class_attribute not in names, prod(shape)
