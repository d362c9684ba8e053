"""Dominance counts against counting all pairs, with ties, duplicates and any number of axes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.kernels.dominance import (
    Integers,
    dominance_work,
    dominators,
    interval_dominators,
    widen,
)
from mechanisms.kernels.long_division import LIMIT
from mechanisms.model.executor import Executor, Inline


class Threads:
    workers = 3

    def map(self, kernel: Callable[[Any], Any], parts: Iterable[Any]) -> list[Any]:
        with ThreadPoolExecutor(self.workers) as pool:
            return list(pool.map(kernel, parts))


def bounds(*tables: Integers) -> list[int]:
    """The largest absolute value of each axis."""
    return [int(row) for row in np.abs(np.concatenate(tables, axis=1)).max(axis=1)]


def above(points: Integers, queries: Integers) -> Integers:
    """#{r' : points(r') > queries(r) on every axis} for each r: the twin of both sweeps."""
    counts = [
        sum(all(p > q for p, q in zip(point, query, strict=True)) for point in points.T.tolist())
        for query in queries.T.tolist()
    ]
    return np.array(counts)


@st.composite
def boxes(draw: st.DrawFn) -> tuple[Integers, Integers]:
    """Values and half widths, (axes, n); small ranges, so that ties abound."""
    axes, size = draw(st.integers(1, 4)), draw(st.integers(1, 40))
    spread = draw(st.sampled_from([1, 3, 20, LIMIT - 1]))
    width = draw(st.sampled_from([1, 3, 20, LIMIT - 1]))
    numbers = st.integers(-spread, spread)

    def table(elements: st.SearchStrategy[int]) -> Integers:
        rows = st.lists(elements, min_size=size, max_size=size)
        return np.array(draw(st.lists(rows, min_size=axes, max_size=axes)), dtype=np.int64)

    return table(numbers), table(st.integers(1, width))


@settings(deadline=None, max_examples=50)
@given(boxes())
def test_counts_are_those_of_all_pairs(case: tuple[Integers, Integers]) -> None:
    values, widths = case
    assert (dominators(values, bounds(values), Inline()) == above(values, values)).all()
    low, high = values - widths, values + widths
    may, must = interval_dominators(low, high, bounds(low, high), Inline())
    assert (may == above(values + widths, values - widths) - 1).all()
    assert (must == above(values - widths, values + widths)).all()


@pytest.mark.parametrize("executor", [Inline(), Threads()], ids=["inline", "threads"])
@pytest.mark.parametrize("axes", [1, 2, 3, 5])
@pytest.mark.parametrize("size", [1, 2, 63, 64, 65, 511, 512, 513, 1100])
def test_blocks_and_words_meet_without_a_seam(axes: int, size: int, executor: Executor) -> None:
    rng = np.random.default_rng(axes * size)
    for spread in (1, 40, 10**12):
        values = rng.integers(-spread, spread + 1, (axes, size))
        widths = rng.integers(1, spread + 1, (axes, size))
        low, high = values - widths, values + widths
        counted = [
            (points[:, :, None] > queries[:, None, :]).all(axis=0).sum(axis=0)
            for points, queries in ((values, values), (high, low), (low, high))
        ]
        assert (dominators(values, bounds(values), executor) == counted[0]).all()
        may, must = interval_dominators(low, high, bounds(low, high), executor)
        assert (may == counted[1] - 1).all()
        assert (must == counted[2]).all()


def test_equal_points_and_ties_never_dominate() -> None:
    values = np.array([[2, 2, 1, 2, 0], [2, 2, 2, 3, 0]])
    assert dominators(values, [2, 3], Inline()).tolist() == [0, 0, 1, 0, 4]


@settings(deadline=None, max_examples=50)
@given(boxes(), st.lists(st.integers(1, LIMIT - 1), min_size=1, max_size=5))
def test_boxes_saturate_where_no_comparison_can_change(
    case: tuple[Integers, Integers], caps: list[int]
) -> None:
    """Exact sums in Python's integers and saturated ones in 64 bits give the same counts."""
    values, widths = case
    largest = max(1, int(np.abs(values).max()))
    sums = np.zeros_like(values)
    exact = np.zeros_like(values).astype(object)
    boxed = np.empty((len(values), 2, values.shape[1]), dtype=np.int64)
    for cap in caps:
        for axis in range(len(values)):
            widen(values[axis], sums[axis], widths[axis], cap, largest, boxed[axis])
        exact = exact + np.minimum(widths, cap).astype(object)
        low, high = values.astype(object) - exact, values.astype(object) + exact
        edges = [largest + 1] * len(values)
        may, must = interval_dominators(boxed[:, 0], boxed[:, 1], edges, Inline())
        assert (may == above(high, low) - 1).all()
        assert (must == above(low, high)).all()
        assert np.abs(boxed).max() <= largest + 1


def test_work_counts_from_three_axes_on() -> None:
    assert dominance_work(317_080, 2) == 0
    assert dominance_work(37_700, 3) == 37_700**2 * 3
