"""The counting engine agrees with NumPy, for every division of the rows into parts."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.queries.parts.cost import CELL, FIXED
from mechanisms.kernels.cells import TILE, Axis, Cells, Measure, bins, margin, tabulate
from mechanisms.model.executor import Executor, Inline, Part, Result

ROWS = 2 * TILE + 77


class Three(Inline):
    """Cuts the rows into three parts."""

    workers = 3


RANDOM = np.random.default_rng(0)
FEW, MANY = RANDOM.integers(0, 3, ROWS).astype(np.uint8), RANDOM.integers(0, 400, ROWS)
NUMBERS = RANDOM.integers(-5, 6, ROWS)
GROUPS = np.array([1, 0, -1])
AXES = (
    Axis(lambda rows: FEW[rows], GROUPS, 2),
    Axis(lambda rows: MANY.astype(np.uint16)[rows], np.arange(400), 400),
)
BINS = Axis(lambda rows: (NUMBERS[rows] + 5).astype(np.uint8), np.arange(11) // 4 - 1, 2)
MEASURES = [Measure(), Measure(lambda rows: NUMBERS[rows]), Measure(axis=BINS)]


@pytest.mark.parametrize("executor", [Inline(), Three()])
@pytest.mark.parametrize("conditional", [False, True])
def test_cells_are_those_of_numpy(executor: Executor, conditional: bool) -> None:
    met = NUMBERS % 2 == 0 if conditional else np.ones(ROWS, bool)
    cells = Cells(AXES, ROWS, (lambda rows: met[rows]) if conditional else None)
    counts, sums, histograms = tabulate(cells, MEASURES, executor)
    in_cell = met & (FEW != 2)
    where = GROUPS[FEW[in_cell]], MANY[in_cell]
    expected = np.zeros((3, 2, 400), np.int64)
    np.add.at(expected[0], where, 1)
    np.add.at(expected[1], where, NUMBERS[in_cell])
    assert (counts == expected[0]).all()
    assert (sums == expected[1]).all()
    bin = (NUMBERS + 5) // 4 - 1
    in_bin = in_cell & (bin >= 0)
    divided = np.zeros((2, 400, 2), np.int64)
    np.add.at(divided, (GROUPS[FEW[in_bin]], MANY[in_bin], bin[in_bin]), 1)
    assert (histograms == divided).all()


class FourThreads(Inline):
    """Runs four parts at the same time: each waits until all have begun."""

    workers = 4

    def map(self, kernel: Callable[[Part], Result], parts: Iterable[Part]) -> list[Result]:
        start = Barrier(self.workers)

        def together(part: Part) -> Result:
            start.wait(60)
            return kernel(part)

        with ThreadPoolExecutor(self.workers) as pool:
            return list(pool.map(together, parts))


def test_four_threads_take_no_more_memory_than_queries_declare() -> None:
    rows, size, count = 4 * TILE, 4000, 200
    codes = (np.arange(rows) % size).astype(np.uint16)
    measures = [Measure(axis=Axis(lambda rows: codes[rows], np.arange(size), size))] * count
    tracemalloc.start()
    try:
        tables = tabulate(Cells((), rows), measures, FourThreads())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (tables[-1] == np.bincount(codes, minlength=size)).all()
    assert peak <= FIXED + CELL * size * count


def test_one_cell_and_no_rows() -> None:
    (count,) = tabulate(Cells((), 5), [Measure()], Inline())
    assert count.shape == ()
    assert count == 5
    (none,) = tabulate(Cells((AXES[0],), 0), [Measure()], Three())
    assert none.tolist() == [0, 0]


def test_margins_are_sums_of_cells() -> None:
    table = np.arange(24).reshape(2, 3, 4)
    assert (margin(table, (0, 2)) == table.sum(axis=1)).all()
    assert margin(table, ()) == table.sum()
    assert (margin(table, (0, 1, 2)) == table).all()


@given(
    edges=st.lists(st.integers(-9, 9), min_size=2, max_size=9, unique=True).map(sorted),
    numbers=st.lists(st.floats(-12, 12), max_size=20),
)
def test_bins_are_those_of_a_search(edges: list[int], numbers: list[float]) -> None:
    ends = np.array(edges, np.float64)
    values = np.array([*numbers, *edges], np.float64)
    expected = np.searchsorted(ends, values, "right") - 1
    expected[values == ends[-1]] = len(edges) - 2
    expected[(values < ends[0]) | (values > ends[-1])] = len(edges) - 1
    assert bins(values, ends).tolist() == expected.tolist()
