"""Pruning reads released counts and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from accounting.privacy_loss import NANO
from mechanisms.model.number import CONFIDENCE
from mechanisms.noise.count_noise import Law
from mechanisms.noise.discrete_gaussian import GRID, Deviation
from mechanisms.noise.gaussian_sums import sum_half_width
from mechanisms.noise.rate import Rate
from mechanisms.noise.unequal_sums import likely_sum_error
from mechanisms.trees.id3.node import Node, noise_of, prune


def leaf(*counts: int, epsilon: int = NANO) -> Node:
    return released(counts, Rate.of_counts(epsilon))


def released(counts: Sequence[int], law: Law) -> Node:
    node = Node(())
    node.release(counts, noise_of(law))
    return node


def inner(*children: Node) -> Node:
    node = Node(())
    node.attribute, node.children = 0, list(children)
    return node


def test_children_of_one_label_are_one_leaf() -> None:
    node = inner(leaf(50, 10), leaf(20, 19), leaf(500, -7))
    prune(node)
    assert not node.children
    # Negative noisy counts are set to 0 before they are added.
    assert node.released == [570, 29]
    assert node.raw == [570, 22]
    assert node.variance == 12


def test_what_noise_explains_is_pruned_and_no_more() -> None:
    # Leaves are merged if the gain of their split is at most √2·√4 = 2.83 records, the standard
    # deviation of the sum of four counts at ε = 1.
    for gain, stays in ((2, False), (3, True)):
        node = inner(leaf(100, 0), leaf(0, gain))
        prune(node)
        assert bool(node.children) is stays


def test_leaves_released_at_other_losses_count_with_their_own_noise() -> None:
    node = inner(leaf(100, 0, epsilon=NANO // 10), leaf(0, 19, epsilon=NANO))
    prune(node)
    # The variances of the four noisy counts add up to 2·2·100 + 2·2·1 = 404. A gain of 19 records
    # is within the noise, because 19² = 361 is less.
    assert not node.children
    assert node.variance == Fraction(404)
    other = inner(leaf(100, 0, epsilon=NANO // 10), leaf(0, 21, epsilon=NANO))
    prune(other)
    assert other.children


def test_leaves_with_gaussian_noise_add_their_variances() -> None:
    wide, narrow = Deviation(10 * GRID), Deviation(GRID)
    # The variances of the four counts add up to 2·100 + 2·1 = 202. So noise explains a gain of 14
    # records, because 14² is less, but not of 15.
    for gain, stays in ((14, False), (15, True)):
        node = inner(released((100, 0), wide), released((0, gain), narrow))
        prune(node)
        assert bool(node.children) is stays
    node = inner(released((100, 0), wide), released((90, 2), narrow), released((90, 2), wide))
    prune(node)
    (first, _) = node.numbers()
    error = sum_half_width({wide: 2, narrow: 1}, 1 - Fraction(repr(CONFIDENCE)))
    assert first == {"value": 280, "low": 280 - error, "high": 280 + error, "raw": 280}
    # Two counts with noise of σ = 10 and one of σ = 1 are added. The half-width of the 95 %
    # interval for their sum is about 1.96·√201 = 27.8.
    assert 27 <= error <= 29


def test_pruning_works_from_the_bottom_up() -> None:
    deep = inner(inner(leaf(90, 1), leaf(80, 2)), inner(leaf(70, 0), leaf(0, 60)))
    prune(deep)
    assert [bool(child.children) for child in deep.children] == [False, True]
    alike = inner(inner(leaf(90, 1), leaf(80, 2)), inner(leaf(70, 0), leaf(60, 1)))
    prune(alike)
    assert not alike.children
    assert alike.released == [300, 4]
    assert alike.variance == 16


def test_ties_go_to_the_first_class() -> None:
    assert leaf(3, 5, 5).label() == 1
    assert leaf(0, 0).label() == 0
    assert leaf(-4, -2).label() == 1


def test_the_interval_of_a_pruned_count_is_that_of_its_raw_sum() -> None:
    children = [leaf(50, 10), leaf(20, -19, epsilon=NANO // 2), leaf(500, -7)]
    assert children[0].numbers() == [
        {"value": count, "low": count - 3, "high": count + 3} for count in (50, 10)
    ]
    node = inner(inner(*children[:2]), children[2])
    prune(node)
    error = likely_sum_error({Rate.of_counts(NANO): 2, Rate.of_counts(NANO // 2): 1}, CONFIDENCE)
    assert error > 5
    assert node.numbers() == [
        {"value": value, "low": raw - error, "high": raw + error, "raw": raw}
        for value, raw in ((570, 570), (10, -16))
    ]
