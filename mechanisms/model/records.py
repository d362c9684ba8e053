"""Private records as mechanisms see them: prepared, read-only, usually memory-mapped arrays.

Nothing of this reaches anyone but through a mechanism that was paid for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class GraphRecords:
    """A simple undirected graph in compressed rows, and what was worked out once for its nodes.

    ``indptr`` int64 (nodes + 1,) and ``indices`` int32 (2 · edges,): the neighbours of node v are
    ``indices[indptr[v]:indptr[v + 1]]``, ascending. ``columns``: one private array a name, each
    of shape (nodes,); ``mechanisms.kernels.preparation`` lists them. ``totals``: private int64
    arrays of the graph as a whole; ``mechanisms.kernels.totals`` lists them.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    columns: Mapping[str, NDArray[Any]]
    totals: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)


@dataclass(frozen=True)
class TableRecords:
    """One array of level codes an attribute (uint8 where it fits), all of the same length.

    ``values`` holds the clamped numbers of numeric attributes as float64; a missing cell has the
    middle of the bounds there. ``ordered`` holds the same numbers in ascending order.
    """

    codes: Mapping[str, NDArray[Any]]
    values: Mapping[str, NDArray[np.float64]]
    ordered: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)


@dataclass(frozen=True)
class PrefixRecords:
    """How many of the public values apply."""

    cutoff: int


Records = GraphRecords | TableRecords | PrefixRecords
