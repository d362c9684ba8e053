"""Statistics of the rows that meet a condition, on every small table, by brute force.

A row is a number and whether it meets the condition. A replacement may move a row into the
condition, out of it, or within it, so bounds of unconditional statistics do not carry over.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement
from math import exp

import numpy as np
import pytest

from accounting.privacy_loss import NANO, PrivacyLoss
from mechanisms.model.domains import Dataset, NeighbouringRelation
from mechanisms.model.records import TableRecords
from mechanisms.selection.laws import exponential_probabilities
from mechanisms.statistics.count import Count
from mechanisms.statistics.grid import Plan
from mechanisms.statistics.quantile import Median, Quantile
from mechanisms.statistics.quantile_sensitivity import AddRemoveBound, ConditionalReplaceBound
from mechanisms.statistics.release.smooth import SmoothSensitivity
from mechanisms.statistics.statistic import Part, Statistic
from mechanisms.statistics.sums import Mean, Sum
from tests.evidence.certification.checks import privacy_breach
from tests.evidence.certification.divergence import hockey_laplace
from tests.support.contexts import context
from tests.unit.mechanisms.statistics.worlds import ADD_REMOVE, RELATIONS, REPLACE, table_dataset

#: The rows of a table as pairs: a number, and 1 if the row meets the condition, else 0.
Table = tuple[tuple[int, int], ...]
WHERE = {"attribute": "parity", "in": ["odd"]}
#: All rows of the small tables. The numbers of rows that do not meet the condition must make no
#: difference.
ALPHABET = ((0, 1), (1, 1), (5, 1), (9, 1), (0, 0), (9, 0))
HIGH = 9
SHARES = [Fraction(1, 2), Fraction(1, 10), Fraction(1)]
each_relation = pytest.mark.parametrize("relation", RELATIONS)


@cache
def tables(most: int) -> list[Table]:
    counts = range(most + 1)
    return [rows for n in counts for rows in combinations_with_replacement(ALPHABET, n)]


def near(rows: Table, relation: NeighbouringRelation, most: int) -> Iterator[Table]:
    for i in range(len(rows)):
        rest = rows[:i] + rows[i + 1 :]
        if relation is ADD_REMOVE:
            yield rest
        else:
            for row in ALPHABET:
                yield ordered(*rest, row)
    if relation is ADD_REMOVE and len(rows) < most:
        for row in ALPHABET:
            yield ordered(*rows, row)


def ordered(*rows: tuple[int, int]) -> Table:
    return tuple(sorted(rows, key=ALPHABET.index))


def records(rows: Table, start: float = 0.0) -> TableRecords:
    values = np.array([number + start for number, _ in rows], np.float64)
    met = np.array([inside for _, inside in rows], np.uint8)
    codes = {"x": np.zeros(len(rows), np.uint8), "parity": met}
    return TableRecords(codes, {"x": values}, {"x": np.sort(values)})


def dataset_of(relation: NeighbouringRelation, rows: Table, start: float = 0.0) -> Dataset:
    return table_dataset(relation, max(len(rows), 1), start, start + HIGH)


def parts_of(
    statistic: Statistic, relation: NeighbouringRelation, rows: Table, start: float
) -> list[tuple[Part, Plan, int]]:
    dataset = dataset_of(relation, rows, start)
    context_of = context(records(rows, start), dataset)
    plans = [(part, part.plan(dataset, NANO)) for part in statistic.parts(dataset)]
    return [(part, plan, part.measure(context_of, plan).value) for part, plan in plans]


def furthest(statistic: Statistic, relation: NeighbouringRelation, start: float) -> list[Fraction]:
    """The most that one change moves each part, in units of the part's own cap."""
    measured = {rows: parts_of(statistic, relation, rows, start) for rows in tables(3)}
    moved = [Fraction(0)] * len(measured[()])
    for rows, here in measured.items():
        for other in near(rows, relation, 3):
            there = measured[other]
            for i, ((_, plan, one), (_, _, two)) in enumerate(zip(here, there, strict=True)):
                moved[i] = max(moved[i], Fraction(abs(one - two), plan.cap))
    return moved


@each_relation
@pytest.mark.parametrize("start", [0.0, -4.0, -40.0, 10.0])
def test_counts_sums_and_means_move_by_their_sensitivity_and_no_less(
    relation: NeighbouringRelation, start: float
) -> None:
    for statistic in (Count(WHERE), Sum("x", WHERE), Mean("x", WHERE)):
        moved = furthest(statistic, relation, start)
        # The largest move by one change, as a share of the sensitivity.
        assert all(each == 1 for each in moved), (statistic, moved)


def test_the_width_alone_does_not_bound_a_sum_where() -> None:
    """The bound of the unconditional sum is too small: a row may leave the condition."""
    width = Sum("x").plan(dataset_of(REPLACE, (), 10.0), NANO)
    plan = Sum("x", WHERE).plan(dataset_of(REPLACE, (), 10.0), NANO)
    (moved,) = furthest(Sum("x", WHERE), REPLACE, 10.0)
    assert moved * plan.cap > width.cap


@each_relation
def test_a_mean_where_counts_its_rows_under_both_relations(relation: NeighbouringRelation) -> None:
    dataset = dataset_of(relation, ())
    whats = [part.what for part in Mean("x", WHERE).parts(dataset)]
    assert whats == ["sum around the middle of the bounds", "count"]


@pytest.mark.parametrize("share", SHARES)
@each_relation
def test_scores_of_quantiles_where(relation: NeighbouringRelation, share: Fraction) -> None:
    statistic = Quantile("x", share, WHERE)
    number = {rows: i for i, rows in enumerate(tables(3))}
    scores = []
    for rows in number:
        dataset = dataset_of(relation, rows)
        cells = statistic.cells(dataset)
        own = statistic.rank_scores(context(records(rows), dataset), cells)
        met = tuple(row for row in rows if row[1])
        plain = Quantile("x", share).rank_scores(context(records(met), dataset), cells)
        assert own.tolist() == plain.tolist()
        scores.append(own)
    matrix = np.array(scores)
    pairs = np.array(
        [(number[rows], number[other]) for rows in number for other in near(rows, relation, 3)]
    )
    sensitivity = statistic.rank_sensitivity(dataset_of(relation, ()))
    assert np.abs(matrix[pairs[:, 0]] - matrix[pairs[:, 1]]).max() <= sensitivity
    some = pairs[:: max(len(pairs) // 100, 1)]
    base = Fraction(9, 10)
    assert not privacy_breach(matrix, some, exponential_probabilities, base, 2 * sensitivity)


@pytest.mark.parametrize("share", SHARES)
@each_relation
def test_smooth_bounds_of_quantiles_where(relation: NeighbouringRelation, share: Fraction) -> None:
    statistic, most = Quantile("x", share, WHERE), 4
    measured = {
        rows: statistic.measure(context(records(rows), dataset_of(relation, rows)), Plan(0, HIGH))
        for rows in tables(most)
    }
    for beta in (0.05, 1.5):
        bound = {rows: one.local.smooth(beta) for rows, one in measured.items() if one.local}
        for rows, here in bound.items():
            for other in near(rows, relation, most):
                moved = abs(measured[rows].value - measured[other].value)
                # Where the smooth bound exceeds the global sensitivity, the mechanism uses the
                # global one.
                assert min(here, HIGH) >= moved
                assert here <= exp(beta) * bound[other] * (1 + 1e-12)


def test_a_replacement_is_not_one_step_of_the_add_remove_bound() -> None:
    """A row leaves the condition and another enters it: the median moves by more than S."""
    moves = []
    for rows in tables(4):
        dataset, median = dataset_of(REPLACE, rows), Median("x", where=WHERE)
        measured = median.measure(context(records(rows), dataset), Plan(0, HIGH))
        assert isinstance(measured.local, ConditionalReplaceBound)
        one_step = AddRemoveBound(measured.local.ordered, Fraction(1, 2), HIGH).smooth(1.5)
        for other in near(rows, REPLACE, 4):
            changed = median.measure(context(records(other), dataset), Plan(0, HIGH))
            moves.append(abs(measured.value - changed.value) / one_step)
    assert max(moves) > 4


@each_relation
def test_exact_divergence_of_smooth_medians_where(relation: NeighbouringRelation) -> None:
    plan, statistic = Plan(0, HIGH), Median("x", where=WHERE)
    for loss in (PrivacyLoss.parse("1", "0.001"), PrivacyLoss.parse("8", "0.1353")):
        laws = {}
        for rows in tables(4):
            measured = statistic.measure(context(records(rows), dataset_of(relation, rows)), plan)
            rate = SmoothSensitivity().rate(measured, plan, loss)
            laws[rows] = (float(measured.value), float(rate.exponent()))
        pairs = {(laws[rows], laws[other]) for rows in laws for other in near(rows, relation, 4)}
        epsilon, delta = loss.epsilon_nano / NANO, loss.delta_atto / 1e18
        assert max(hockey_laplace(p, q, epsilon) for p, q in pairs) <= delta * (1 + 1e-9)
