"""Rows built by windows equal rows sorted in one piece, for all windows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.kernels.graphs.graph import compressed_rows, first_repeated, windowed_rows, windows
from tests.unit.mechanisms.kernels.graphs.test_graph import columns, pairs, plain_first_duplicate


@settings(deadline=None)
@given(pairs, st.integers(1, 100))
def test_windows_change_nothing(case: tuple[int, list[tuple[int, int]]], window: int) -> None:
    nodes, edges = case
    ends = columns(edges)
    indptr, expected = compressed_rows(*ends, nodes)
    indices = np.zeros(2 * len(edges), np.int32)
    repeated = windowed_rows(*ends, indptr, indices, window)
    assert indices.tolist() == expected.tolist()
    first = plain_first_duplicate(edges)
    assert repeated == (first is not None)
    assert first_repeated(*ends, indptr, window) == first


@given(st.lists(st.integers(0, 9), min_size=1, max_size=30), st.integers(1, 20))
def test_a_window_holds_what_it_may_or_one_row(degrees: list[int], window: int) -> None:
    indptr = np.concatenate(([0], np.cumsum(degrees)))
    ranges = windows(indptr, window)
    assert [first for first, _ in ranges] == [0, *(last for _, last in ranges[:-1])]
    assert ranges[-1][1] == len(degrees)
    for first, last in ranges:
        assert first + 1 == last or indptr[last] - indptr[first] <= window


@pytest.mark.parametrize("fault", ["degrees", "rows", "node"])
def test_what_does_not_fit_together_is_refused(fault: str) -> None:
    sources, targets = columns([(0, 1), (1, 2)])
    indptr, indices = compressed_rows(sources, targets, 3)
    if fault == "degrees":
        indptr = np.array([0, 2, 3, 4])
    elif fault == "rows":
        indices = indices[:3]
    else:
        sources = sources + np.int32(2)
    with pytest.raises(ValueError):
        windowed_rows(sources, targets, indptr, indices, 10)
