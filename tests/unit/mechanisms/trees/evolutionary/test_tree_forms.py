"""Proposed trees as arrays and as JSON are the same trees."""

from __future__ import annotations

import numpy as np

from mechanisms.kernels.forests import confusion
from mechanisms.model.forest import forest
from mechanisms.trees.dice import Dice
from mechanisms.trees.evolutionary.proposals import Proposals
from mechanisms.trees.evolutionary.questions import Questions
from mechanisms.trees.evolutionary.tree_forms import as_json, flattened
from mechanisms.trees.task import Task
from tests.support.randomness import SeededRandomness
from tests.unit.mechanisms.trees.tables import dataset, people

QUESTIONS = Questions(Task.of(dataset(), None, "paid"))


def test_both_forms_count_alike() -> None:
    generator = Proposals(QUESTIONS, 3, 6, Dice(SeededRandomness(1)))
    first = [generator.random() for _ in range(30)]
    trees = [True, False, *first, *(generator.child(first) for _ in range(60))]
    table = people(3000, noise=0.4)
    fast = confusion(table, flattened(trees, QUESTIONS, 0))
    documents = [as_json(tree, QUESTIONS, "yes", "no") for tree in trees]
    slow = confusion(table, forest(documents, dataset().domain, "paid", "yes"))  # type: ignore[arg-type]
    assert (fast.true_positives == slow.true_positives).all()
    assert (fast.true_negatives == slow.true_negatives).all()
    assert (fast.positives, fast.negatives) == (slow.positives, slow.negatives)
    assert fast.true_positives[0] == fast.positives
    assert fast.true_negatives[1] == fast.negatives
    assert len(np.unique(fast.true_positives)) > 10


def test_tests_that_no_tree_makes_are_left_out() -> None:
    tree = ((2, 1), True, ((1, 3), False, True))
    flat = flattened([tree], QUESTIONS, 0)
    assert [column.attribute for column in flat.columns] == ["town", "age"]
    assert flat.literals == 4 + 1
    assert as_json(tree, QUESTIONS, "yes", "no") == {
        "attribute": "age",
        "threshold": 50.0,
        "above": {"label": "yes"},
        "below": {
            "attribute": "town",
            "value": "?",
            "equal": {"label": "no"},
            "other": {"label": "yes"},
        },
    }
