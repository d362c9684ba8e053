"""The radix sort against the library's stable sorts."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.kernels.radix import ascending, classes, lexicographic, sort_below, sorted_numbers

EDGES = st.sampled_from([-(2**63), -(2**62), -1, 0, 1, 2**11 - 1, 2**11, 2**62, 2**63 - 1])
NUMBERS = st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1) | EDGES


@settings(deadline=None)
@given(st.lists(NUMBERS, max_size=60))
def test_the_order_is_the_stable_one(numbers: list[int]) -> None:
    values = np.array(numbers, dtype=np.int64)
    order = np.argsort(values, kind="stable").tolist()
    assert ascending(values).tolist() == order
    largest = max([0, *map(abs, numbers)])
    if largest < 2**63:
        assert ascending(values, largest).tolist() == order
        assert ascending(values, min(3 * largest, 2**63 - 1)).tolist() == order
    assert values.tolist() == numbers


@settings(deadline=None)
@given(st.lists(st.floats(allow_nan=False) | st.sampled_from([0.0, -0.0, 1.0]), max_size=60))
def test_numbers_are_sorted(numbers: list[float]) -> None:
    values = np.array(numbers, dtype=np.float64)
    assert sorted_numbers(values).tolist() == sorted(numbers)
    assert values.tolist() == numbers


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 2), st.integers(0, 9)), max_size=40))
def test_several_rows_sort_and_number_columns(columns: list[tuple[int, int, int]]) -> None:
    rows = np.array(columns, dtype=np.int64).reshape(-1, 3).T
    assert lexicographic(*rows).tolist() == np.lexsort(rows).tolist()
    numbers, firsts = classes(*rows)
    assert sorted(columns[i] for i in firsts) == sorted(set(columns))
    assert [columns[firsts[number]] for number in numbers] == columns


@settings(deadline=None)
@given(st.integers(1, 2**63 - 1) | st.integers(1, 5000), st.data())
def test_codes_below_a_public_limit_are_sorted_in_place(limit: int, data: st.DataObject) -> None:
    codes = data.draw(st.lists(st.integers(0, limit - 1), max_size=40))
    values = np.array(codes, dtype=np.int64)
    sort_below(values, np.empty_like(values), limit)
    assert values.tolist() == sorted(codes)
