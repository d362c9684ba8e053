"""The contingency engine: counts and sums of rows by cell, all of them in one pass over the rows.

A cell is one combination of groups, one group per axis, in row-major order. Rows of no group or
without the condition go to one more cell, which is dropped. No step branches on a record, so the
work follows from the number of rows, the axes and the measures alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.compiled import compiled
from mechanisms.model.executor import Executor

Codes = NDArray[Any]
Integers = NDArray[np.int64]
Truths = NDArray[np.bool_]

#: The number of rows that are counted before the next rows are read. Their cell numbers and values
#: stay in the cache of the processor.
TILE = 1 << 16
#: The most parts into which the rows are cut for parallel counting. Each part holds its own copy of
#: all tables, so more parts would take more memory.
PARTS = 4
#: A table of up to this many counters is counted in ``SETS`` copies, and consecutive rows use
#: different copies. So consecutive rows that fall into one cell do not wait for the same counter.
INTERLEAVED, SETS = 1 << 12, 4
#: Added to the cell number of a row once for each axis of the table on which the row has no group,
#: and once if the row fails the condition. The number is then negative in every table of fewer than
#: 2⁴⁴ cells, which marks the row as one without a cell. Up to eight of these addends, times 2¹⁵
#: bins, add up within 64 bits.
NOWHERE = -(1 << 44)


@dataclass(frozen=True)
class Axis:
    """One dimension of a table of cells.

    ``codes`` returns the codes of some rows, and ``groups`` maps each code to its group, int64
    (codes,), or to −1 for none. ``size`` is the public number of groups.
    """

    codes: Callable[[slice], Codes]
    groups: Integers
    size: int

    def offsets(self, stride: int) -> Integers:
        """The distance of each code's first cell from cell 0, or ``NOWHERE``."""
        places: Integers = np.where(self.groups < 0, NOWHERE, self.groups * stride)
        return places


@dataclass(frozen=True)
class Measure:
    """What is summed in each cell: ``values`` of rows as int64, or 1 for each row if None.

    With an ``axis`` every cell is divided by the groups of one more axis.
    """

    values: Callable[[slice], Integers] | None = None
    axis: Axis | None = None


@dataclass(frozen=True)
class Cells:
    """The cells of ``axes``, counted over ``rows`` rows, or over those that meet ``where``."""

    axes: tuple[Axis, ...]
    rows: int
    where: Callable[[slice], Truths] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(axis.size for axis in self.axes)

    @cached_property
    def size(self) -> int:
        return prod(self.shape)

    def numbers(self, rows: slice) -> Integers:
        """The cell of each of these rows, int64; negative for rows of no cell."""
        cells = np.zeros(rows.stop - rows.start, np.int64)
        stride = self.size
        for axis in self.axes:
            stride //= axis.size
            _add_offsets(cells, axis.codes(rows), axis.offsets(stride))
        if self.where is not None:
            cells += np.where(self.where(rows), 0, NOWHERE)
        return cells


def tabulate(cells: Cells, measures: Sequence[Measure], executor: Executor) -> list[Integers]:
    """Each measure by cell, int64 (*shape,), and (*shape, groups) for a measure with an axis.

    Every sum stays in 64 bits if rows · |value| does, which public bounds must ensure.
    """
    sizes = [cells.size * (1 if m.axis is None else m.axis.size) for m in measures]

    def part(ends: tuple[int, int]) -> list[Integers]:
        sums = [np.zeros(size + 1, np.int64) for size in sizes]
        for start in range(*ends, TILE):
            _add_tile(cells, measures, slice(start, min(start + TILE, ends[1])), sums)
        return [one[:-1] for one in sums]

    pieces = min(executor.workers, PARTS, -(-cells.rows // TILE) or 1)
    cuts = pairwise(cells.rows * piece // pieces for piece in range(pieces + 1))
    parts = executor.map(part, list(cuts))
    merged = [sum(tables[1:], start=tables[0]) for tables in zip(*parts, strict=True)]
    return [
        table.reshape(cells.shape if m.axis is None else (*cells.shape, m.axis.size))
        for table, m in zip(merged, measures, strict=True)
    ]


def margin(table: NDArray[Any], axes: Sequence[int]) -> NDArray[Any]:
    """``table`` summed over all axes but these, which ascend."""
    others = tuple(axis for axis in range(table.ndim) if axis not in axes)
    result: NDArray[Any] = np.asarray(table.sum(axis=others))
    return result


def _add_tile(
    cells: Cells, measures: Sequence[Measure], rows: slice, sums: Sequence[Integers]
) -> None:
    numbers = cells.numbers(rows)
    whole = _closed(numbers, cells.size)
    for measure, table in zip(measures, sums, strict=True):
        # A measure is a number that is summed in each cell. The ``SETS`` copies of a small table,
        # which consecutive rows use in turn, exist for one measure at a time. Copies for all
        # measures together would take four times the memory.
        few = len(table) <= INTERLEAVED
        sets = np.zeros((SETS, len(table)), np.int64) if few else table[np.newaxis]
        if measure.axis is not None:
            groups, size = measure.axis.offsets(1), measure.axis.size
            _count_divided(numbers, measure.axis.codes(rows), groups, size, sets)
        elif measure.values is None:
            _count(whole, sets)
        else:
            _sum(whole, measure.values(rows), sets)
        if few:
            table += sets.sum(axis=0)


@compiled
def _add_offsets(cells: Integers, codes: Codes, offsets: Integers) -> None:
    for row in range(len(cells)):
        cells[row] += offsets[codes[row]]


@compiled
def _closed(cells: Integers, size: int) -> Integers:
    """The cell numbers, with ``size`` in place of every negative one."""
    closed = np.empty_like(cells)
    for row in range(len(cells)):
        # A row that belongs to no cell has a negative cell number. It is replaced by ``size``, the
        # number of an extra cell. The shift gives −1, all of whose bits are 1, for a negative
        # number, and 0 for others. A branch would show by its timing which rows belong to no cell.
        sign = cells[row] >> 63
        closed[row] = (cells[row] & ~sign) | (size & sign)
    return closed


@compiled
def _count(cells: Integers, counts: Integers) -> None:
    last = len(counts) - 1
    for row in range(len(cells)):
        counts[row & last, cells[row]] += 1


@compiled
def _count_divided(
    cells: Integers, codes: Codes, groups: Integers, size: int, counts: Integers
) -> None:
    last, end = len(counts) - 1, counts.shape[1] - 1
    for row in range(len(cells)):
        cell = cells[row] * size + groups[codes[row]]
        sign = cell >> 63  # Its bits are all 1 for a row without a cell (negative), else all 0.
        counts[row & last, (cell & ~sign) | (end & sign)] += 1


@compiled
def _sum(cells: Integers, values: Integers, sums: Integers) -> None:
    last = len(sums) - 1
    for row in range(len(cells)):
        sums[row & last, cells[row]] += values[row]


@compiled
def bins(numbers: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.uint16]:
    """The bin of each number between ``edges``, the last bin closed; ``len(edges) − 1`` outside.

    The search takes the same number of steps for every number. At most 2¹⁵ edges, ascending.
    """
    last = len(edges) - 1
    widest = 1
    while 2 * widest <= last:
        widest *= 2
    places = np.empty(len(numbers), np.uint16)
    for row in range(len(numbers)):
        number, place, step = numbers[row], 0, widest
        while step > 0:
            # This binary search has no branch, whose timing would show private numbers. If ``place
            # + step`` lies beyond the last edge of the bins, the number is compared with the last
            # edge instead, and the step is not taken.
            next_place = min(place + step, last)
            taken = (edges[next_place] <= number) & (place + step < last)
            place += step * taken
            step //= 2
        inside = (edges[0] <= number) & (number <= edges[last])
        places[row] = place * inside + last * (1 - inside)
    return places
