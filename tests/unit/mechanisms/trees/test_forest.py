"""Forests: which attributes their trees ask, how large they grow, and what they spend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest

from accounting.composition import total
from accounting.privacy_loss import NANO, PrivacyLoss
from app.queries.parts.examples import ADULT
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.selection import SELECTORS
from mechanisms.trees import forest as module
from mechanisms.trees.dice import Dice
from mechanisms.trees.forest import (
    PrivateSplits,
    RandomSplits,
    grown_forest,
    permutation,
    random_forest,
)
from mechanisms.trees.id3 import Id3
from mechanisms.trees.task import Task
from tests.support.contexts import context
from tests.support.randomness import SeededRandomness
from tests.unit.mechanisms.trees.test_naive_bayes import records

TASK = Task.of(ADULT, None, "income")
CERTAIN = PrivacyLoss(100_000 * NANO)


def leaves(tree: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    if "label" in tree:
        return [tree]
    return [leaf for below in tree["branches"].values() for leaf in leaves(below)]


def attributes_of(tree: Mapping[str, Any]) -> set[str]:
    below = [attributes_of(one) for one in tree.get("branches", {}).values()]
    return {tree["attribute"]}.union(*below) if below else set()


def test_every_tree_counts_every_record_once() -> None:
    forest = RandomSplits(TASK, 5, 2)
    trees = random_forest(context(records(), ADULT, CERTAIN, SeededRandomness(1)), forest)
    assert len(trees) == 5
    for tree in trees:
        counted = [count["value"] for leaf in leaves(tree) for count in leaf["counts"].values()]
        assert sum(counted) == 400
        assert len(attributes_of(tree)) == 2
    assert len({frozenset(attributes_of(tree)) for tree in trees}) > 1


def test_a_small_loss_grows_small_trees_by_public_facts() -> None:
    """An attribute whose leaves would hold more noise than records is left out."""
    forest = RandomSplits(TASK, 8, 4)

    def sizes(epsilon: str) -> int:
        dice = Dice(SeededRandomness(2))
        return max(map(len, forest.groups(ADULT, PrivacyLoss.parse(epsilon), dice)))

    assert [sizes(epsilon) for epsilon in ("0.00001", "0.01", "1")] == [0, 3, 4]
    few = RandomSplits(TASK, 64, 4)
    drawn = few.groups(ADULT, CERTAIN, Dice(SeededRandomness(2)))
    levels = {one.name: len(one.levels) for one in TASK.attributes}
    for group in drawn:
        size = 1
        for name in group:
            size *= levels[name]
        assert size <= few.most_leaves == 32


def test_orders_are_uniform() -> None:
    dice = Dice(SeededRandomness(7))
    drawn = [tuple(permutation(3, dice)) for _ in range(600)]
    # Each of the six orders is expected 100 times. A fair shuffle leaves the range from 60 to 140
    # with a probability below 10⁻⁴ in all.
    assert all(60 < drawn.count(order) < 140 for order in permutations(range(3)))


def test_trees_of_private_splits_share_the_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    losses: list[int] = []
    grow = module.grow

    def spy(within: Any, id3: Id3) -> Any:
        losses.append(within.loss.epsilon_nano)
        assert len(id3.task.attributes) == 3, "two thirds of four, rounded up"
        return grow(within, id3)

    monkeypatch.setattr(module, "grow", spy)
    id3 = Id3(TASK, 2, "gini", Sensitivity.GLOBAL, SELECTORS["permute_and_flip"], True)
    forest, loss = PrivateSplits(id3, 3), PrivacyLoss(10 * NANO + 1)
    trees = grown_forest(context(records(), ADULT, loss, SeededRandomness(1)), forest)
    assert len(trees) == 3
    assert sum(losses) == loss.epsilon_nano
    assert len({*losses[:-1]}) == 1
    assert total(forest.steps(loss)) == loss
    assert len(forest.steps(loss)) == 3 * 5


@pytest.mark.parametrize("trees", [1, 7])
def test_steps_of_random_splits_add_up(trees: int) -> None:
    loss = PrivacyLoss(NANO + 1)
    assert total(RandomSplits(TASK, trees, 3).steps(ADULT, loss)) == loss
    persons = replace(ADULT, records_per_person=3)
    assert len(RandomSplits(TASK, trees, 3).steps(persons, loss)) == trees
