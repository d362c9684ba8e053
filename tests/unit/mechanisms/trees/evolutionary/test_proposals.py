"""Proposals: bounded depth, no dead branches, random words only; tidying keeps all labels."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.model.domains import CategoricalAttribute, NumericAttribute
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.trees.dice import Dice
from mechanisms.trees.evolutionary.proposals import (
    Proposals,
    Tree,
    flipped,
    grafted,
    positions,
    subtree,
)
from mechanisms.trees.evolutionary.questions import ANYTHING, Questions
from mechanisms.trees.task import Task
from tests.support.randomness import SeededRandomness
from tests.unit.mechanisms.noise.chi_square import FALSE_ALARM, p_value
from tests.unit.mechanisms.trees.tables import ATTRIBUTES, dataset

TASK = Task.of(dataset(), None, "paid")
QUESTIONS = Questions(TASK)


def proposals(seed: int, initial: int = 3, most: int = 5) -> Proposals:
    return Proposals(QUESTIONS, initial, most, Dice(SeededRandomness(seed)))


def depth(tree: Tree) -> int:
    return max(map(len, positions(tree)))


def said(tree: Tree, cells: dict[int, int]) -> bool:
    """The label that the tree gives to a row with these cells."""
    while not isinstance(tree, bool):
        (attribute, place), yes, no = tree
        numeric = QUESTIONS.numeric[attribute]
        answer = cells[attribute] > place if numeric else cells[attribute] == place
        tree = yes if answer else no
    return tree


def every_row() -> list[dict[int, int]]:
    return [{0: s, 1: t, 2: a} for s in range(2) for t in range(4) for a in range(4)]


def check_tidy(tree: Tree) -> None:
    """Checks that some row reaches every leaf and that no test has two equal subtrees."""
    reached = set()
    for cells in every_row():
        at: tuple[int, ...] = ()
        here = tree
        while not isinstance(here, bool):
            (attribute, place), yes, no = here
            assert yes != no
            answer = (
                cells[attribute] > place
                if QUESTIONS.numeric[attribute]
                else cells[attribute] == place
            )
            at, here = (*at, int(answer)), yes if answer else no
        reached.add(at)
    leaves = {at for at in positions(tree) if isinstance(subtree(tree, at), bool)}
    assert leaves == reached


@given(st.integers(0, 2**32), st.integers(0, 6))
def test_random_trees_are_full_alive_and_undecided(seed: int, initial: int) -> None:
    tree = proposals(seed, initial, max(initial, 5)).random()
    # A path can test each of the three attributes at least once. Whether it can test one again
    # depends on the outcomes.
    assert min(initial, 3) <= depth(tree) <= max(initial, 1)
    check_tidy(tree)


@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 3), st.integers(3, 5))
def test_children_keep_the_depth_and_are_tidy(seed: int, initial: int, most: int) -> None:
    generator = proposals(seed, initial, most)
    parents = [generator.random() for _ in range(4)]
    for _ in range(10):
        child = generator.child(parents)
        assert depth(child) <= most
        check_tidy(child)
        parents.append(child)


@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 2))
def test_no_proposal_labels_everything_alike(seed: int, initial: int) -> None:
    """Parents of one test: most crossings at the root, and many prunings, would be constant."""
    generator = proposals(seed, initial, 2)
    parents = [generator.random() for _ in range(2)]
    assert all(len(set(labels(tree))) == 2 for tree in parents)
    for _ in range(20):
        child = generator.child(parents)
        assert len(set(labels(child))) == 2
        assert depth(child) <= 2


def test_trees_of_depth_zero_are_all_there_is() -> None:
    generator = proposals(1, 0, 0)
    drawn = {generator.random() for _ in range(50)}
    assert drawn == {True, False}
    assert {generator.child([True, False]) for _ in range(50)} == {True, False}


@given(st.integers(0, 2**32))
def test_tidying_changes_no_label(seed: int) -> None:
    generator = proposals(seed)
    first, second = generator.random(), generator.random()
    both = sorted(set(positions(first)) & set(positions(second)))
    at = both[seed % len(both)]
    untidy = replaced(first, at, subtree(second, at))
    tidy = generator.tidied(untidy)
    check_tidy(tidy)
    assert labels(tidy) == labels(untidy)
    assert labels(flipped(tidy)) == [not label for label in labels(tidy)]


@given(st.integers(0, 2**32))
def test_a_graft_is_tidied_as_the_whole_would_be(seed: int) -> None:
    generator = proposals(seed)
    first, second = generator.random(), generator.random()
    crossed = generator.crossed(first, second)
    both = set(positions(first)) & set(positions(second))
    whole = {generator.tidied(replaced(first, at, subtree(second, at))) for at in both}
    assert crossed in whole
    for at in positions(first):
        assert grafted(first, at, True) == generator.tidied(replaced(first, at, True))


def replaced(tree: Tree, at: tuple[int, ...], by: Tree) -> Tree:
    """The tree with another subtree at a position, tidy or not."""
    if not at:
        return by
    assert not isinstance(tree, bool)
    test, yes, no = tree
    if at[0]:
        return test, replaced(yes, at[1:], by), no
    return test, yes, replaced(no, at[1:], by)


def labels(tree: Tree) -> list[bool]:
    return [said(tree, cells) for cells in every_row()]


def test_mutation_reaches_every_allowed_depth() -> None:
    generator = proposals(3, 2, 5)
    start = generator.random()
    assert {depth(generator.mutated(start)) for _ in range(500)} >= {2, 3, 4, 5}


def test_a_pruned_tree_has_fewer_tests() -> None:
    generator = proposals(4)
    tree = generator.random()
    for _ in range(50):
        assert len(positions(generator.pruned(tree))) < len(positions(tree))
    assert generator.pruned(True) is True


def test_a_test_is_drawn_by_attribute_then_by_place() -> None:
    dice = Dice(SeededRandomness(5))
    drawn = Counter(QUESTIONS.draw(ANYTHING, dice) for _ in range(60_000))
    expected = {(0, place): 1 / 6 for place in range(2)}
    expected |= {(1, place): 1 / 12 for place in range(4)} | {(2, p): 1 / 9 for p in range(3)}
    assert drawn.keys() == expected.keys()
    counts: Any = [drawn[test] for test in expected]  # type: ignore[index]
    assert p_value(np.array(counts), list(expected.values())) > FALSE_ALARM


def test_only_living_tests_are_drawn() -> None:
    dice = Dice(SeededRandomness(6))
    # At this node of a tree the sex is known, the town is b or c, and the age is in the second or
    # third quarter.
    possible = {0: 0b01, 1: 0b0110, 2: 0b0110}
    drawn = Counter(QUESTIONS.draw(possible, dice) for _ in range(4000))
    assert drawn.keys() == {(1, 1), (1, 2), (2, 1)}
    # Town and age are equally likely. Of 4,000 draws 2,000 are expected for each, and 300 is nine
    # standard deviations.
    assert 1700 < drawn[2, 1] < 2300
    assert QUESTIONS.draw({0: 1, 1: 0b1000, 2: 0b0100}, dice) is None


def test_without_anything_to_ask_there_is_no_search() -> None:
    alone = (
        CategoricalAttribute("only", ("x",)),
        NumericAttribute("one", 0.0, 1.0, (0.0, 1.0), missing="?"),
        ATTRIBUTES[-1],
    )
    with pytest.raises(UnsupportedQuery):
        Questions(Task.of(dataset(attributes=alone), None, "paid"))


def test_dice_are_fair() -> None:
    dice = Dice(SeededRandomness(7))
    for n in (1, 2, 3, 7, 64):
        counts = np.bincount([dice.below(n) for _ in range(20_000)], minlength=n)
        assert len(counts) == n
        assert n == 1 or p_value(counts, [1 / n] * n) > FALSE_ALARM
