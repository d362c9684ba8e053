"""Counts the distinct persons of each cell of a table, and of each cell of its margins.

A person with rows in two cells counts in both, and once in a margin that merges them. So margins
are counted from the rows and are no sums of cells. The rows of a person stand together: a row is
the first of its person in a cell if the cell's latest row is that of another person. No step
branches on a record.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.cells import TILE, Cells, Integers
from mechanisms.kernels.compiled import compiled

Persons = NDArray[np.int32]


def distinct_persons(
    cells: Cells, persons: Persons, margins: Sequence[Sequence[int]]
) -> list[Integers]:
    """For each of ``margins`` the persons with a row in each of its cells, int64.

    Args:
        cells: rows outside of all cells, or without the condition, belong to no margin either.
        persons: the number of the person of each row, ascending, (rows,).
        margins: the axes that each margin keeps, ascending; all axes for the cells themselves.
    """
    places = [_places(cells.shape, axes) for axes in margins]
    counts = [np.zeros(int(place[-1]) + 1, np.int64) for place in places]
    latest = [np.full(len(count), -1, np.int32) for count in counts]
    for start in range(0, cells.rows, TILE):
        rows = slice(start, min(start + TILE, cells.rows))
        numbers = cells.numbers(rows)
        # Rows that belong to no cell of the table are counted in one extra cell, which is dropped
        # at the end. So no branch on a private record is needed.
        whole = np.where(numbers < 0, cells.size, numbers)
        for place, count, last in zip(places, counts, latest, strict=True):
            _count(whole, place, persons[rows], last, count)
    shapes = (tuple(cells.shape[axis] for axis in axes) for axes in margins)
    return [count[:-1].reshape(shape) for count, shape in zip(counts, shapes, strict=True)]


def _places(shape: tuple[int, ...], axes: Sequence[int]) -> Integers:
    """For each cell of the table its cell in the margin, and last the margin's extra cell."""
    sizes = [shape[axis] for axis in axes]
    size = int(np.prod(sizes, dtype=np.int64))
    numbers = np.arange(size, dtype=np.int64).reshape(
        [length if axis in axes else 1 for axis, length in enumerate(shape)]
    )
    return np.append(np.broadcast_to(numbers, shape).ravel(), size)


@compiled
def _count(
    cells: Integers, places: Integers, persons: Persons, latest: Persons, counts: Integers
) -> None:
    for row in range(len(cells)):
        place = places[cells[row]]
        counts[place] += latest[place] != persons[row]
        latest[place] = persons[row]
