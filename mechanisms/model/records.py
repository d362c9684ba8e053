"""Private records as mechanisms see them: prepared, read-only, usually memory-mapped arrays.

These values are secret: they may leave only through a mechanism whose loss was charged.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mechanisms.model.open_domain import OpenValues


@dataclass(frozen=True)
class GraphRecords:
    """A simple undirected graph in compressed rows, with columns and totals prepared once.

    ``indptr`` int64 (nodes + 1,) and ``indices`` int32 (2 · edges,): the neighbours of node v are
    ``indices[indptr[v]:indptr[v + 1]]``, ascending. ``columns`` holds one private array per name,
    of shape (nodes,); ``mechanisms.kernels.graphs.preparation`` lists them. ``totals`` holds
    private int64 arrays of the whole graph; ``mechanisms.kernels.graphs.totals`` lists them.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    columns: Mapping[str, NDArray[Any]]
    totals: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)


@dataclass(frozen=True)
class TableRecords:
    """One array of level codes per attribute (uint8 where it fits), all of the same length.

    ``values`` holds the clamped numbers of numeric attributes as float64; a missing cell has the
    middle of the bounds. ``ordered`` holds the same numbers in ascending order. ``days`` holds the
    days of dates since their first one as int32; a missing cell has 0. ``persons`` int32 (rows,)
    numbers the person of each row from 0 on, ascending; None for rows without persons.
    ``open_values`` holds the private values of open attributes, whose codes are int32. ``tables``
    holds the private counts of rows that ``mechanisms.model.level_tables`` lists.
    """

    codes: Mapping[str, NDArray[Any]]
    values: Mapping[str, NDArray[np.float64]]
    ordered: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    days: Mapping[str, NDArray[np.int32]] = field(default_factory=dict)
    persons: NDArray[np.int32] | None = None
    open_values: Mapping[str, OpenValues] = field(default_factory=dict)
    tables: Mapping[tuple[str, ...], NDArray[np.int64]] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """The number of rows; private."""
        return len(next(iter(self.codes.values())))


@dataclass(frozen=True)
class PrefixRecords:
    """How many of the public values apply; private."""

    cutoff: int


Records = GraphRecords | TableRecords | PrefixRecords
Kind = TypeVar("Kind", GraphRecords, TableRecords, PrefixRecords)


def records_of(kind: type[Kind], records: Records) -> Kind:
    """``records`` as the given kind. Raises: TypeError for any other, a fault of the caller."""
    if not isinstance(records, kind):
        raise TypeError(f"this is measured on {kind.__name__}")
    return records
