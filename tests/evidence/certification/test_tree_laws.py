"""The law of a whole private tree of depth one stays within e^ε on all neighbouring tables.

All tables of up to five records, two attributes of two levels and two classes: 1,287 of them. As in
``test_laws`` scores are on a coarse grid and probabilities are rational: e^−ε of one share of the
loss is r, and a tree costs nine shares. The choice of the split costs four of them: p = e^−λ of the
selection is r⁴ where the scores of neighbours move one way, and otherwise r².
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import cache
from math import exp

import numpy as np
import pytest

from accounting.privacy_loss import NANO, PrivacyLoss
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.noise.discrete_laplace import discrete_laplace_probability
from mechanisms.selection import SELECTORS
from mechanisms.selection.dampening import scores
from mechanisms.trees.id3 import Id3, grow
from mechanisms.trees.id3.law import (
    Outcome,
    at_least_probability,
    depth_one_probabilities,
    difference_at_least,
)
from mechanisms.trees.id3.split_rule import CRITERIA, SplitRule
from mechanisms.trees.id3.stop_rule import least_count
from mechanisms.trees.task import Task
from tests.evidence.certification import checks
from tests.evidence.certification.table_universes import table_universe
from tests.evidence.certification.tables import ADD_REMOVE
from tests.support.contexts import context
from tests.support.randomness import SeededRandomness
from tests.unit.mechanisms.noise.chi_square import FALSE_ALARM, p_value

ROWS = 5
UNIVERSE = table_universe("attributes", ADD_REMOVE, ROWS, 2, 2, 2)
#: The loss of a tree is divided into nine equal shares. These are the values of e^−ε for one share:
#: 3/5 for a large loss, 19/20 for a small one.
R = [Fraction(3, 5), Fraction(19, 20)]
ONE_OF_R = [R[0], pytest.param(R[1], marks=pytest.mark.slow)]
#: How many of these shares the whole tree spends, and how many of them on the choice of the split
#: and on a leaf. The record count of the root spends the last one.
TREE, SPLIT, LEAF = 9, 4, 4


def rate(criterion: str, sensitivity: Sensitivity, r: Fraction) -> Fraction:
    """e^−λ of the choice of the split in production, for scores of sensitivity one at q = 0."""
    grid = CRITERIA[criterion].table_grid(ROWS)
    rule = SplitRule(CRITERIA[criterion], sensitivity, SELECTORS["exponential"], grid)
    return r ** (SPLIT if rule.one_way else SPLIT // 2)


@cache
def all_scores(criterion: str, sensitivity: Sensitivity) -> np.ndarray:
    """Scores of both attributes in every table, q = 0."""
    chosen = CRITERIA[criterion]
    grid = chosen.table_grid(ROWS)
    rows = []
    for member in UNIVERSE.members:
        tables = [np.array(member.counts(v), dtype=np.int64) for v in range(2)]
        measured = chosen.of_tables(tables, UNIVERSE.dataset, sensitivity, grid)
        rows.append(scores(measured, grid, sensitivity, 0, chosen.direction))
    return np.stack(rows)


def laws(
    criterion: str,
    sensitivity: Sensitivity,
    selector: str,
    least: int,
    r: Fraction,
    p: Fraction | None = None,
) -> list[dict[Outcome, Fraction]]:
    """The law of every table; ``p`` is another e^−λ of the choice than that of production."""
    chosen = p or rate(criterion, sensitivity, r)
    drawn = cache(lambda row: SELECTORS[selector].probabilities(row, chosen))
    whole = cache(lambda tables, row: depth_one_probabilities(tables, drawn(row), least, r))
    distributions = []
    for member, row in zip(UNIVERSE.members, all_scores(criterion, sensitivity), strict=True):
        tables = tuple(tuple(map(tuple, member.counts(v))) for v in range(2))
        low = int(row.min())
        distributions.append(whole(tables, tuple(int(score) - low for score in row)))
    return distributions


def breach(distributions: list[dict[Outcome, Fraction]], bound: Fraction) -> tuple[int, int] | None:
    """Neighbours with an outcome whose probabilities differ by more than 1 / bound."""
    for x, y in UNIVERSE.pairs.tolist():
        for outcome, left in distributions[x].items():
            right = distributions[y][outcome]
            if checks.apart(left, right, bound):
                return x, y
    return None


@pytest.mark.parametrize("r", ONE_OF_R)
@pytest.mark.parametrize("selector", SELECTORS)
@pytest.mark.parametrize("sensitivity", list(Sensitivity))
@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_whole_tree_is_private(
    criterion: str, sensitivity: Sensitivity, selector: str, r: Fraction
) -> None:
    distributions = laws(criterion, sensitivity, selector, 3, r)
    assert all(sum(law.values()) == 1 for law in distributions[::50])
    assert breach(distributions, r**TREE) is None


@pytest.mark.parametrize("least", [1, 2, 6])
def test_wherever_the_stop_rule_lies(least: int) -> None:
    distributions = laws("information_gain", Sensitivity.SHIFTED, "permute_and_flip", least, R[0])
    assert breach(distributions, R[0] ** TREE) is None


def test_less_than_is_spent_is_not_enough() -> None:
    """The judge has teeth: labels alone show more than four of the nine shares."""
    distributions = laws("max", Sensitivity.GLOBAL, "permute_and_flip", 3, R[0])
    assert breach(distributions, R[0] ** LEAF) is not None


def test_the_one_way_rate_where_scores_move_both_ways_is_caught() -> None:
    """Shifted scores of one table may rise and fall together with one record."""
    one_way = R[0] ** SPLIT
    args = ("gini", Sensitivity.SHIFTED, "permute_and_flip", 3, R[0])
    assert breach(laws(*args, one_way), R[0] ** TREE) is not None


def test_a_leaf_that_spends_more_than_is_left_is_caught() -> None:
    """Sixteen shares on the class counts of a root that stops, in place of eight."""
    r, outcomes = R[0], []
    for member in UNIVERSE.members:
        totals = [sum(column) for column in zip(*member.counts(0), strict=True)]
        stops = 1 - at_least_probability(6 - sum(totals), r)
        outcomes.append({("leaf", 0): stops * difference_at_least(totals[1] - totals[0], r**16)})
    assert breach(outcomes, r**TREE) is not None


@pytest.mark.parametrize("p", [Fraction(1, 3), Fraction(9, 10)])
def test_tails_are_sums_of_the_noise(p: Fraction) -> None:
    mass = [discrete_laplace_probability(k, p) for k in range(-400, 401)]
    for least in range(-6, 7):
        single = sum(mass[least + 400 :])
        assert abs(at_least_probability(least, p) - single) < Fraction(1, 10**15)
    floats = np.array([float(share) for share in mass])
    # The law of the difference X − Y of two noise values, from −800 on.
    differences = np.convolve(floats, floats)
    for least in range(-6, 7):
        expected = differences[800 + least :].sum()
        assert float(difference_at_least(least, p)) == pytest.approx(expected, abs=1e-12)


def test_grown_trees_follow_the_law() -> None:
    """By Max the fine scores are the coarse ones, so the law of production is known exactly."""
    share = 3 * NANO // 8
    # The two possible splits of this dataset score 3 and 5. With equal scores the split would be
    # chosen with probability 1/2 at any rate of the selection, so a wrong rate would not show.
    member, records = UNIVERSE.members[1250], UNIVERSE.records[1250]
    tables = [np.array(member.counts(v), dtype=np.int64) for v in range(2)]
    criterion = CRITERIA["max"]
    grid = criterion.table_grid(ROWS)
    measured = criterion.of_tables(tables, UNIVERSE.dataset, Sensitivity.GLOBAL, grid)
    row = scores(measured, grid, Sensitivity.GLOBAL, 0, 1).tolist()
    assert row == [3, 5]
    r = Fraction(exp(-share / NANO))
    chosen = rate("max", Sensitivity.GLOBAL, r)
    selection = SELECTORS["permute_and_flip"].probabilities(row, chosen)
    least = least_count(LEAF * share, 2, 2)
    law = depth_one_probabilities([table.tolist() for table in tables], selection, least, r)
    task = Task.of(UNIVERSE.dataset, ("A", "B"), "C")
    id3 = Id3(task, 1, "max", Sensitivity.GLOBAL, SELECTORS["permute_and_flip"], False)
    loss, seen = PrivacyLoss(TREE * share), Counter[Outcome]()
    seeded = context(records, UNIVERSE.dataset, loss, SeededRandomness(11))
    for _ in range(4000):
        tree = grow(seeded, id3)
        if "label" in tree:
            seen["leaf", int(tree["label"])] += 1
        else:
            labels = (int(tree["branches"][level]["label"]) for level in ("0", "1"))
            seen["AB".index(tree["attribute"]), *labels] += 1
    assert seen.keys() <= law.keys()
    counts = np.array([seen[outcome] for outcome in law])
    shares = [float(share) for share in law.values()]
    # Rare outcomes share one bin, because the chi-square test needs at least five draws per bin.
    rare = [i for i, share in enumerate(shares) if share * 4000 < 10]
    common = [i for i in range(len(shares)) if i not in rare]
    assert len(common) >= 5
    observed = [*counts[common], counts[rare].sum()]
    expected = [*(shares[i] for i in common), sum(shares[i] for i in rare)]
    if expected[-1] * 4000 < 5:
        observed[-2:] = [sum(observed[-2:])]
        expected[-2:] = [sum(expected[-2:])]
    assert p_value(np.array(observed), expected) > FALSE_ALARM
