"""The k-th largest, and what is above it and equal to it."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.noise.order import kth_largest, partition

integers = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-3, 3), st.integers(250, 260))


@settings(deadline=None)
@given(values=st.lists(integers, min_size=1, max_size=40), data=st.data())
def test_the_kth_largest_is_that_of_sorting(values: list[int], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(values)))
    assert kth_largest(np.array(values, dtype=np.int64), k) == sorted(values)[-k]


@settings(deadline=None)
@given(values=st.lists(st.integers(-3, 3), min_size=1, max_size=30), threshold=st.integers(-4, 4))
def test_partition_lists_what_is_above_and_what_is_equal(values: list[int], threshold: int) -> None:
    above, tied = np.empty((2, len(values)), dtype=np.int64)
    firm, ties = partition(np.array(values, dtype=np.int64), threshold, above, tied)
    assert above[:firm].tolist() == [i for i, v in enumerate(values) if v > threshold]
    assert tied[:ties].tolist() == [i for i, v in enumerate(values) if v == threshold]
