"""The stop rule in whole numbers against N_T / (t·|C|) ≥ √2 / ε in rationals."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from accounting.privacy_loss import NANO
from mechanisms.model.tree_shape import MAX_NODES
from mechanisms.trees.id3.stop_rule import (
    FEWEST_NODES,
    MAX_COUNTERS,
    PER_SPLIT,
    least_count,
    least_count_of,
    most_splits,
    node_limit,
    to_split,
)

#: A bound on the variance of Laplace noise at ε = 1.
ONE = Fraction(2)
#: Limits on the nodes of a tree and on its rows, which no tree of these tests reaches.
ROOM, ROWS = MAX_NODES, 10**9


@given(st.integers(1, 10**13), st.integers(1, 5000), st.integers(2, 100))
def test_the_least_count_is_the_least_that_passes(epsilon: int, levels: int, classes: int) -> None:
    def passes(count: int) -> bool:
        ratio = Fraction(count * epsilon, levels * classes * NANO)
        return count > 0 and ratio**2 >= 2

    least = least_count(epsilon, levels, classes)
    assert passes(least)
    assert not passes(least - 1)


@given(
    st.fractions(Fraction(1, 10**6), 10**9, max_denominator=2**20),
    st.integers(1, 5000),
    st.integers(2, 100),
)
def test_noise_of_any_variance_splits_at_its_deviation(
    variance: Fraction, levels: int, classes: int
) -> None:
    least = least_count_of(variance, levels, classes)
    bound = variance * (levels * classes) ** 2
    assert least**2 >= bound
    assert least == 1 or (least - 1) ** 2 < bound


def test_nodes_below_their_own_bound_stop() -> None:
    # At ε = 1 and with two classes, a split into two levels needs √2 · 2 · 2 = 5.66 noisy records,
    # and one into three levels √2 · 3 · 2 = 8.49.
    noisy, levels = [5, 6, 8, 9, -20], [2, 2, 3, 3, 2]
    assert to_split(noisy, levels, 2, 10, ONE, ROOM, ROWS) == [1, 3]


def test_where_there_is_no_room_the_largest_go_first() -> None:
    noisy, levels = [10_000, 30_000, 20_000, 40_000], [10, 10, 10, 30]
    room = 2 * (10 + PER_SPLIT)
    assert to_split(noisy, levels, 2, 10, ONE, room, ROWS) == [1, 2]
    assert to_split(noisy, levels, 2, 10, ONE, room - 1, ROWS) == [1]
    assert to_split(noisy, levels, 2, 10, ONE, 0, ROWS) == []


def test_nodes_take_no_more_rows_than_there_may_be() -> None:
    # Each split uses up the least count that allows it, out of the limit on rows. At ε = 1 and with
    # two classes this is 9 rows for three levels and 6 for two.
    noisy, levels = [10, 40, 12, 20, 30], [3, 3, 2, 3, 2]
    assert to_split(noisy, levels, 2, 10, ONE, ROOM, 16) == [1, 3, 4]
    assert to_split(noisy, levels, 2, 10, ONE, ROOM, 15) == [1, 4]
    assert to_split(noisy, levels, 2, 10, ONE, ROOM, 9) == [1]


@given(
    st.lists(st.integers(2, 9), min_size=1, max_size=5),
    st.lists(st.integers(-50, 500), min_size=1, max_size=60),
    st.integers(1, 2000),
    st.data(),
)
def test_splits_of_a_depth_have_a_public_bound(
    levels: list[int], noisy: list[int], rows: int, data: st.DataObject
) -> None:
    """For nodes that have spent one attribute per depth, whichever it was."""
    bounds = most_splits(levels, 2, ONE, rows)
    depth = data.draw(st.integers(0, len(levels) - 1))
    of_rest = st.permutations(levels).map(lambda order: max(order[depth:]))
    widest = [data.draw(of_rest) for _ in noisy]
    assert len(to_split(noisy, widest, 2, 10, ONE, ROOM, rows)) <= bounds[depth]


def test_counters_of_a_level_are_bounded() -> None:
    noisy, levels = [1000] * 40, [2] * 40
    assert len(to_split(noisy, levels, 2, MAX_COUNTERS // 16, ONE, ROOM, ROWS)) == 16
    assert len(to_split(noisy, levels, 2, MAX_COUNTERS * 2, ONE, ROOM, ROWS)) == 1


@given(
    st.lists(st.integers(2, 9), min_size=1, max_size=5),
    st.integers(2, 9),
    st.fractions(Fraction(1, 1000), 1000),
    st.integers(0, 10**8),
)
def test_nodes_hold_four_times_their_noise_on_average(
    levels: list[int], classes: int, variance: Fraction, rows: int
) -> None:
    limit = node_limit(levels, classes, variance, rows)
    fewest = max(FEWEST_NODES, 1 + max(levels) + PER_SPLIT)
    assert fewest <= limit <= MAX_NODES + PER_SPLIT
    assert limit == fewest or (4 * limit * classes) ** 2 * variance <= rows**2
    assert limit == MAX_NODES + PER_SPLIT or (4 * (limit + 1) * classes) ** 2 * variance > rows**2
