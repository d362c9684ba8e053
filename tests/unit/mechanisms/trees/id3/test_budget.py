"""Shares of a private tree: every path spends the whole loss, to the last nano."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting.composition import total
from accounting.privacy_loss import PrivacyLoss
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.tree_shape import MAX_DEPTH, MAX_NODES
from mechanisms.trees.id3.budget import Budget, most_nodes

epsilons = st.integers(10**6, 10**12)


@given(epsilons, st.integers(0, MAX_DEPTH))
def test_every_path_spends_exactly_the_loss(epsilon: int, splits: int) -> None:
    budget = Budget(PrivacyLoss(epsilon), splits)
    for depth in range(splits + 1):
        counts = depth if depth == splits else depth + 1
        assert (counts + depth) * budget.share + budget.leaf(depth) == epsilon
        # What an early leaf has to spend is never less than what a full path ends with.
        assert budget.leaf(depth) >= budget.leaf(splits) >= budget.share >= 1


@given(epsilons, st.integers(0, MAX_DEPTH), st.lists(st.integers(1, 50), min_size=1, max_size=70))
def test_steps_add_up_to_the_loss(epsilon: int, depth: int, levels: list[int]) -> None:
    loss = PrivacyLoss(epsilon)
    splits = min(depth, len(levels))
    steps = Budget(loss, splits).steps("permute_and_flip", levels, 2)
    assert len(steps) == 2 * splits + 1
    assert total(steps) == loss
    assert all(step.composition == "parallel" for step in steps)


def test_the_shares_of_a_tree_of_depth_two() -> None:
    budget = Budget(PrivacyLoss(1_000_000_003), 2)
    assert budget.share == 200_000_000
    assert [budget.leaf(depth) for depth in range(3)] == [800_000_003, 400_000_003, 200_000_003]
    assert [step.times for step in budget.steps("x", [2, 5, 3], 2)] == [1, 1, 5, 5, 30]


def test_a_tree_without_splits_spends_all_on_its_leaf() -> None:
    budget = Budget(PrivacyLoss(10**9), 0)
    (step,) = budget.steps("x", [2], 3)
    assert (step.loss, step.times) == (PrivacyLoss(10**9), 3)


def test_a_loss_too_small_for_its_levels_is_refused() -> None:
    with pytest.raises(UnsupportedQuery):
        Budget(PrivacyLoss(100), 64)


def test_nodes_are_bounded_by_public_facts() -> None:
    assert most_nodes([2, 7, 3], 2) == 21
    assert most_nodes([2, 7, 3], 5) == 42
    assert most_nodes([100] * 5, 5) == MAX_NODES
