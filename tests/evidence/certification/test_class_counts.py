"""Counts by class are private: every small table, every neighbour, the exact law of the release.

A release is independent discrete Laplace noise on the counts of each table, so its loss on a pair
of neighbours is exactly Σ λ_i·‖v_i(x) − v_i(y)‖₁, as in ``test_tables``. Tables of up to three
records, two attributes of two and three levels, two classes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import groupby, product
from math import exp, prod
from typing import Any

import numpy as np
import pytest

from accounting.composition import for_group, total_rho
from accounting.privacy_loss import NANO, PrivacyLoss
from accounting.rho import FEMTO, LaplaceNoise
from mechanisms.model.domains import NeighbouringRelation
from mechanisms.trees.class_counts import ClassCounts, Group
from mechanisms.trees.forest import RandomSplits, random_forest
from mechanisms.trees.id3.law import label_probabilities
from mechanisms.trees.naive_bayes import class_counts
from mechanisms.trees.task import Task
from tests.evidence.certification.table_universes import Member, Universe, table_universe
from tests.evidence.certification.tables import ADD_REMOVE, REPLACE
from tests.support.contexts import context
from tests.support.randomness import SeededRandomness
from tests.unit.mechanisms.noise.chi_square import FALSE_ALARM, p_value

BOTH = pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
LOSS = PrivacyLoss(NANO)
#: The tables of counts of each model: the groups of attributes that are counted by class.
MODELS: dict[str, tuple[Group, ...]] = {
    "naive bayes": ((), ("A",), ("B",)),
    "pairs": (("A", "B"), ("B", "A"), ("A",)),
}


@cache
def universe(relation: NeighbouringRelation, rows: int) -> Universe:
    return table_universe("attributes", relation, rows, 2, 3, 2)


def plan_of(name: str, relation: NeighbouringRelation, rows: int = 3) -> ClassCounts:
    return ClassCounts(MODELS[name], "C", universe(relation, rows).dataset, LOSS)


def counts(cube: np.ndarray, group: Group) -> np.ndarray:
    """The exact counts of a table, from those of all combinations, in the axes A, B, C."""
    axes = ["ABC".index(name) for name in (*group, "C")]
    others = tuple(axis for axis in range(3) if axis not in axes)
    order = sorted(axes)
    summed: np.ndarray = cube.sum(axis=others).transpose([order.index(axis) for axis in axes])
    return summed


def changes(plan: ClassCounts, relation: NeighbouringRelation, rows: int) -> Iterator[list[int]]:
    """For each pair of neighbours how far each table moves in the L1 norm."""
    own = universe(relation, rows)
    tables = [[counts(member.cube(), group) for group in plan.groups] for member in own.members]
    for x, y in own.pairs.tolist():
        yield [int(abs(p - q).sum()) for p, q in zip(tables[x], tables[y], strict=True)]


def rates(plan: ClassCounts) -> list[Fraction]:
    measurements = [one for table in plan.tables for one in table.measurements]
    return [one.noise.rate.exponent() for one in measurements]  # type: ignore[attr-defined]


def worst(of: Sequence[Fraction], moves: Iterator[list[int]]) -> Fraction:
    """The largest loss of all pairs of neighbours."""
    distinct = {tuple(one) for one in moves}
    return max(
        sum((rate * move for rate, move in zip(of, one, strict=True)), Fraction(0))
        for one in distinct
    )


@BOTH
@pytest.mark.parametrize("rows", [3, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", MODELS)
def test_all_tables_together_lose_epsilon(
    name: str, relation: NeighbouringRelation, rows: int
) -> None:
    plan = plan_of(name, relation, rows)
    loss = worst(rates(plan), changes(plan, relation, rows))
    assert Fraction(999_999, 10**6) < loss <= 1, "within the charge, and nothing is paid in vain"


@BOTH
def test_the_whole_loss_for_each_table_is_rejected(relation: NeighbouringRelation) -> None:
    """Danger: tables of one model read the same records, so their losses add up."""
    plan = plan_of("naive bayes", relation)
    alone = [rate * len(plan.groups) for rate in rates(plan)]
    assert worst(alone, changes(plan, relation, 3)) > Fraction(29, 10)


def test_the_rates_of_add_remove_under_replace_are_rejected() -> None:
    added = rates(plan_of("naive bayes", ADD_REMOVE))
    assert worst(added, changes(plan_of("naive bayes", REPLACE), REPLACE, 3)) > Fraction(19, 10)


@BOTH
def test_the_charge_in_rho_is_that_of_noise_on_all_tables(relation: NeighbouringRelation) -> None:
    """ρ of independent noises adds up; that of one table is certified in ``test_rho``."""
    plan = plan_of("naive bayes", relation)
    moved = 1 if relation is ADD_REMOVE else 2
    stated = [LaplaceNoise(rate, moved, 1).femto(1) for rate in rates(plan)]
    assert total_rho(plan.steps()) == sum(stated)
    # A person with three records changes each table of counts by three times as much as one record.
    grouped = [LaplaceNoise(rate, moved, 1).femto(3) for rate in rates(plan)]
    assert total_rho(for_group(plan.steps(), 3)) == sum(grouped)
    assert sum(stated) < FEMTO * Fraction(1, 2) / 2


@BOTH
def test_shares_add_up_to_the_charge(relation: NeighbouringRelation) -> None:
    loss = PrivacyLoss(10**7 + 1)
    own = universe(relation, 3).dataset
    plan = class_counts(Task.of(own, None, "C"), own, loss)
    assert [*map(len, plan.groups)] == [0, 1, 1]
    shares = [step.loss.epsilon_nano for step in plan.steps()]
    assert sum(shares) == loss.epsilon_nano
    assert [len([*same]) for _, same in groupby(shares)] == [2, 1], "the last has the remainder"


Outcome = tuple[tuple[object, ...], ...]
#: ``SHARE`` is e^−ε for the ε that one tree of the forest spends. ``TREES`` is the number of trees.
SHARE, TREES = Fraction(1, 3), 2
#: The number of forests that are drawn to compare their frequencies with the exact law.
RUNS = 2000


def forest_law(member: Member, rate: Fraction) -> dict[Outcome, Fraction]:
    """The law of two trees of one random split each: the attributes, and the labels of leaves."""
    of_tree: dict[tuple[object, ...], Fraction] = {}
    for name in ("A", "B"):
        table = counts(member.cube(), (name,)).tolist()
        levels = [label_probabilities(cell, rate) for cell in table]
        for labels in product((0, 1), repeat=len(levels)):
            chances = (level[label] for level, label in zip(levels, labels, strict=True))
            of_tree[name, *labels] = Fraction(1, 2) * prod(chances)
    return {
        (one, other): of_tree[one] * of_tree[other] for one, other in product(of_tree, repeat=2)
    }


@pytest.mark.parametrize("rows", [2, pytest.param(4, marks=pytest.mark.slow)])
@BOTH
def test_the_law_of_a_whole_forest_is_private(relation: NeighbouringRelation, rows: int) -> None:
    own = universe(relation, rows)
    # The noise is the same under both relations. A replaced record changes two counts of a tree, so
    # each tree then spends twice its ε.
    base = SHARE if relation is ADD_REMOVE else SHARE**2
    law = cache(lambda place: forest_law(own.members[place], SHARE))
    seen = Fraction(1)
    for x, y in own.pairs.tolist():
        for outcome, chance in law(x).items():
            ratio = law(y)[outcome] / chance
            assert base**TREES <= ratio <= 1 / base**TREES
            seen = max(seen, ratio)
    assert sum(law(0).values()) == 1
    assert seen > 1 / SHARE, "labels alone show more than the share of one tree"


def test_forests_follow_the_law() -> None:
    own = universe(ADD_REMOVE, 3)
    member, records = own.members[-9], own.records[-9]
    # With less ε a tree would not split three records by an attribute with three values.
    share = 29 * NANO // 10
    forest = RandomSplits(Task.of(own.dataset, None, "C"), TREES, 1)
    loss = PrivacyLoss(TREES * share)
    plan = forest.counts([("A",), ("B",)], own.dataset, loss)
    law = forest_law(member, Fraction(exp(-rates(plan)[0])))
    seeded = context(records, own.dataset, loss, SeededRandomness(3))
    drawn: Counter[Outcome] = Counter(
        tuple(_outcome(tree) for tree in random_forest(seeded, forest)) for _ in range(RUNS)
    )
    assert drawn.keys() <= law.keys()
    rare = [one for one in law if law[one] * RUNS < 10]
    common = [one for one in law if law[one] * RUNS >= 10]
    observed = [*(drawn[one] for one in common), sum(drawn[one] for one in rare)]
    expected = [*(float(law[one]) for one in common), float(sum(law[one] for one in rare))]
    assert len(common) > 5
    assert p_value(np.array(observed), expected) > FALSE_ALARM


def _outcome(tree: dict[str, Any]) -> tuple[object, ...]:
    return tree["attribute"], *(int(leaf["label"]) for leaf in tree["branches"].values())
