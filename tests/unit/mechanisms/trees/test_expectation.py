"""The learner that a quote expects: by public facts alone, and in a sensible order of ε."""

from __future__ import annotations

from dataclasses import replace

import pytest

from accounting.privacy_loss import PrivacyLoss
from app.queries.parts.examples import ADULT
from mechanisms.model.domains import Dataset, NeighbouringRelation, TableDomain
from mechanisms.trees.expectation import default_trees, expected_best
from mechanisms.trees.task import Task

TASK = Task.of(ADULT, None, "income")


def described(rows: int, replaced: bool = False) -> Dataset:
    assert isinstance(ADULT.domain, TableDomain)
    relation = NeighbouringRelation.REPLACE if replaced else NeighbouringRelation.ADD_REMOVE
    bounds = {"rows": rows, "max_rows": None} if replaced else {"max_rows": rows}
    return Dataset("adult", relation, replace(ADULT.domain, **bounds))


def named(epsilon: str, rows: int = 100_000, replaced: bool = False, depth: int = 5) -> str:
    return expected_best(TASK, described(rows, replaced), PrivacyLoss.parse(epsilon), depth)


def test_few_records_at_a_small_loss_get_two_trees() -> None:
    def trees(loss: PrivacyLoss, rows: int = 1000, replaced: bool = False) -> int:
        return default_trees(described(rows, replaced), loss)

    assert trees(PrivacyLoss.parse("0.149999999")) == 2
    assert trees(PrivacyLoss.parse("0.15")) == 4
    assert trees(PrivacyLoss.parse("0.15"), rows=999) == 2
    assert trees(PrivacyLoss.parse("0.15"), replaced=True) == 2
    assert trees(PrivacyLoss.parse("0.3"), replaced=True) == 4
    assert trees(PrivacyLoss(0, 0, 1, 1)) == 4


@pytest.mark.parametrize(
    ("epsilon", "best"),
    [
        ("0.00001", "id3"),  # no node can be split, so id3 is a single leaf
        ("0.002", "forest"),
        ("0.003", "naive_bayes"),
        ("0.05", "id3"),
        ("5", "id3"),
    ],
)
def test_the_loss_decides(epsilon: str, best: str) -> None:
    assert named(epsilon) == best


def test_more_rows_are_as_good_as_more_loss() -> None:
    assert named("0.003", rows=2_000_000) == "id3"
    assert named("0.05", rows=2_000) == "forest"


def test_a_replacement_is_two_changes() -> None:
    assert named("0.003") == named("0.006", replaced=True) == "naive_bayes"
    assert named("0.006") == "id3"


def test_a_shallower_tree_leaves_more_for_each_split() -> None:
    assert (named("0.003", depth=5), named("0.003", depth=1)) == ("naive_bayes", "id3")
