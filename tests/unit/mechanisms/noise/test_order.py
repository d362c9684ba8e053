"""The k largest: which they are, in which order, and that equal ones are shuffled fairly."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.noise.coins import EXHAUSTED
from mechanisms.noise.order import kth_largest, largest_in_order, partition, shuffle_front, shuffled
from tests.support.randomness import GivenWords, SeededRandomness
from tests.unit.mechanisms.noise.chi_square import FALSE_ALARM, p_value

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


@settings(deadline=None)
@given(
    values=st.lists(st.integers(-(2**62), 2**62) | st.integers(0, 3), min_size=1, max_size=30),
    data=st.data(),
    seed=st.integers(0, 2**32),
)
def test_the_largest_come_first(values: list[int], data: st.DataObject, seed: int) -> None:
    k = data.draw(st.integers(1, len(values)))
    array = np.array(values, dtype=np.int64)
    chosen = largest_in_order(array, k, SeededRandomness(seed).stream())
    assert len(set(chosen.tolist())) == k
    assert array[chosen].tolist() == sorted(values, reverse=True)[:k]


@pytest.mark.parametrize(
    ("values", "answers"),
    [
        # One place for two, below a sure first; then two above that are equal.
        ([5, 9, 5, 1], [(1, 0), (1, 2)]),
        ([7, 7, 1, 7], list(permutations((0, 1, 3), 2))),
        ([7, 2, 7, 2, 2], [(*a, b) for a in permutations((0, 2)) for b in (1, 3, 4)]),
    ],
)
def test_equal_values_stand_in_uniform_order(
    values: list[int], answers: list[tuple[int, ...]]
) -> None:
    """2·10⁴ draws; false alarm 10⁻⁶ for each of the three."""
    source = SeededRandomness(6).stream()
    array = np.array(values, dtype=np.int64)
    seen = Counter(
        tuple(largest_in_order(array, len(answers[0]), source).tolist()) for _ in range(20_000)
    )
    assert set(seen) == set(answers)
    observed = np.array([seen[answer] for answer in answers])
    assert p_value(observed, [1 / len(answers)] * len(answers)) > FALSE_ALARM


def test_the_first_of_equals_alone_is_caught() -> None:
    observed = np.bincount(np.zeros(20_000, dtype=np.int64), minlength=3)
    assert p_value(observed, [1 / 3] * 3) < FALSE_ALARM


def test_a_shuffle_that_runs_out_of_words_begins_again_with_more() -> None:
    """70 refused words, then the choice of the third of three items."""
    refused = [3] * 70
    assert shuffled(np.arange(3), 1, GivenWords([*refused, 2, 1])).tolist() == [2]
    assert shuffle_front(np.arange(3), 1, np.array(refused, dtype=np.uint64)) == EXHAUSTED


def test_a_single_item_takes_no_word() -> None:
    assert shuffle_front(np.arange(1), 1, np.zeros(0, dtype=np.uint64)) == 0
