"""Shares of a private tree: every path spends the whole loss, to the last nano."""

from __future__ import annotations

from fractions import Fraction
from math import floor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accounting.composition import Step, total, total_rho
from accounting.conversion import rho_limit
from accounting.privacy_loss import ATTO, NANO, PrivacyLoss
from accounting.rho import Pure, pure_femto
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.tree_shape import MAX_DEPTH, MAX_NODES
from mechanisms.selection import SELECTORS
from mechanisms.trees.id3.budget import Budget, loss_for_shares, most_nodes

epsilons = st.integers(10**6, 10**12)


@given(epsilons, st.integers(0, MAX_DEPTH))
def test_every_path_spends_exactly_the_loss(epsilon: int, splits: int) -> None:
    budget = Budget(PrivacyLoss(epsilon), splits)
    for depth in range(splits + 1):
        counts = depth if depth == splits else depth + 1
        spent = counts * budget.count_loss.epsilon_nano + depth * budget.split_loss.epsilon_nano
        assert spent + budget.leaf(depth) == epsilon
        # A leaf above the full depth gets at least the loss of a leaf at the full depth. This is at
        # least the loss of choosing a split.
        assert budget.leaf(depth) >= budget.leaf(splits) >= budget.split_loss.epsilon_nano


@given(epsilons, st.integers(1, MAX_DEPTH))
def test_a_count_costs_a_quarter_of_a_choice_and_each_is_rounded_down_once(
    epsilon: int, splits: int
) -> None:
    budget, share = Budget(PrivacyLoss(epsilon), splits), Fraction(epsilon, 5 * splits + 4)
    assert budget.count_loss.epsilon_nano == floor(share) >= 1
    assert budget.split_loss.epsilon_nano == floor(4 * share)


@given(st.integers(1, 10**12), st.integers(0, MAX_DEPTH))
def test_the_loss_for_a_share_is_the_least_that_has_it(split: int, splits: int) -> None:
    def leaf_and_split(loss: int) -> int:
        budget = Budget(PrivacyLoss(loss), splits)
        return min(budget.leaf(splits), budget.split_loss.epsilon_nano)

    split += 10**6
    loss = loss_for_shares(split, splits).epsilon_nano
    assert leaf_and_split(loss) >= split > leaf_and_split(loss - 1)


@given(epsilons, st.integers(0, MAX_DEPTH), st.lists(st.integers(1, 50), min_size=1, max_size=70))
def test_steps_add_up_to_the_loss(epsilon: int, depth: int, levels: list[int]) -> None:
    loss = PrivacyLoss(epsilon)
    splits = min(depth, len(levels))
    steps = Budget(loss, splits).steps(SELECTORS["permute_and_flip"], levels, 2)
    assert len(steps) == 2 * splits + 1
    assert total(steps) == loss
    assert all(step.composition == "parallel" for step in steps)


def test_the_shares_of_a_tree_of_depth_two() -> None:
    budget = Budget(PrivacyLoss(1_400_000_011), 2)
    assert (budget.count_loss, budget.split_loss) == (PrivacyLoss(10**8), PrivacyLoss(400_000_003))
    assert [budget.leaf(depth) for depth in range(3)] == [1_300_000_011, 800_000_008, 400_000_005]
    assert [step.times for step in budget.steps(SELECTORS["exponential"], [2, 5, 3], 2)] == [
        1,
        1,
        5,
        5,
        30,
    ]


def test_a_tree_without_splits_spends_all_on_its_leaf() -> None:
    budget = Budget(PrivacyLoss(10**9), 0)
    (step,) = budget.steps(SELECTORS["exponential"], [2], 3)
    assert (step.loss, step.times) == (PrivacyLoss(10**9), 3)


def test_a_loss_too_small_for_its_levels_is_refused() -> None:
    with pytest.raises(UnsupportedQuery):
        Budget(PrivacyLoss(100), 64)


def test_nodes_are_bounded_by_public_facts() -> None:
    assert most_nodes([2, 7, 3], 2) == 21
    assert most_nodes([2, 7, 3], 5) == 42
    assert most_nodes([100] * 5, 5) == MAX_NODES


def test_rho_is_that_of_the_most_expensive_path() -> None:
    """Danger: the steps of the longest path add up to far less than what an early leaf spends."""
    loss, exponential = PrivacyLoss.parse("0.3"), SELECTORS["exponential"]
    steps = Budget(loss, 2).steps(exponential, [2, 5, 3], 2)
    assert total_rho(steps) == 38781615899585
    longest = [*steps[:-1], Step("leaf", steps[-1].loss, bound=Pure(steps[-1].loss.epsilon()))]
    assert total_rho(longest) == 5967122920078
    half = Budget(PrivacyLoss.parse("0.5"), 5).steps(exponential, [2] * 5, 2)
    assert round(total_rho(half) / 10**15, 4) == 0.1145
    # A published table states that an account that counts in ρ with a limit of ε = 1, 3 or 10
    # admits 0, 1 or 13 such trees of ε = 0.5.
    room = [rho_limit(e * NANO, ATTO // 10**6) for e in (1, 3, 10)]
    assert [one // total_rho(half) for one in room] == [0, 1, 13]


@pytest.mark.parametrize("selector", SELECTORS)
@settings(max_examples=30)
@given(st.integers(10**7, 10**11), st.integers(0, 12))
def test_an_early_leaf_takes_what_is_left_of_rho(selector: str, epsilon: int, splits: int) -> None:
    chosen = SELECTORS[selector]
    budget = Budget(PrivacyLoss(epsilon), splits, chosen)
    steps = budget.steps(chosen, [2] * max(splits, 1), 2)
    assert total(steps) == budget.loss
    whole, count = total_rho(steps), Pure(budget.count_loss.epsilon()).femto()
    split = chosen.rho_bound(budget.split_loss, 1).femto()
    plain = Budget(PrivacyLoss(epsilon), splits)
    for depth in range(splits):
        spent = (depth + 1) * count + depth * split
        assert spent + pure_femto(budget.leaf(depth)) <= whole
        assert budget.leaf(splits) <= budget.leaf(depth) <= plain.leaf(depth)
        more = budget.leaf(depth) + 1
        assert more > plain.leaf(depth) or spent + pure_femto(more) > whole
    assert budget.leaf(splits) == plain.leaf(splits)


def test_rho_of_leaves_that_take_what_is_left_of_it() -> None:
    """The vector of the theory, and its table: three queries of ε = 0.5 fit E = 1, 30 fit 3."""
    exponential = SELECTORS["exponential"]
    steps = Budget(PrivacyLoss.parse("0.3"), 2, exponential).steps(exponential, [2, 5, 3], 2)
    assert total_rho(steps) == 5967122920078
    half = Budget(PrivacyLoss.parse("0.5"), 5, exponential).steps(exponential, [2] * 5, 2)
    room = [rho_limit(e * NANO, ATTO // 10**6) for e in (1, 3, 10)]
    assert [one // total_rho(half) for one in room] == [3, 30, 252]


def test_a_person_with_more_records_has_the_path_of_the_group() -> None:
    steps = Budget(PrivacyLoss.parse("0.1"), 2).steps(SELECTORS["exponential"], [2, 5, 3], 2)
    # Each path of a tree with two levels of splits has 14 shares of ε. The most expensive path is a
    # leaf at the root, with one share for the root's count and 13 for the leaf. A person with three
    # records loses both three times.
    of_three = total_rho([step.for_group(3) for step in steps])
    count, leaf = (Pure(Fraction(nano, NANO)).femto(3) for nano in (7_142_857, 92_857_143))
    assert of_three == count + leaf
