"""Quantiles, sums, counts and prefix sums of every small table, by brute force."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, pairwise
from math import exp

import numpy as np
import pytest

from accounting.privacy_loss import NANO, PrivacyLoss
from mechanisms.model.domains import NeighbouringRelation
from mechanisms.noise.addition import Integers
from mechanisms.selection.laws import exponential_probabilities
from mechanisms.statistics.grid import Plan
from mechanisms.statistics.prefix_sum import SmallestSum
from mechanisms.statistics.quantile import Median, Quantile
from mechanisms.statistics.quantile_sensitivity import AddRemoveBound, ReplaceBound
from mechanisms.statistics.release.smooth import LargestLocalSensitivities, SmoothSensitivity
from mechanisms.statistics.sums import Mean, Sum
from tests.evidence.certification.checks import privacy_breach
from tests.evidence.certification.divergence import hockey_laplace
from tests.support.contexts import context
from tests.unit.mechanisms.statistics.worlds import (
    ADD_REMOVE,
    RELATIONS,
    REPLACE,
    prefix,
    prefix_dataset,
    table,
    table_dataset,
)

Table = tuple[int, ...]
#: The numbers that a row may have: the bounds 0 and 9, and two numbers between them at unequal
#: distances.
ALPHABET = (0, 1, 5, 9)
HIGH = 9
SHARES = [Fraction(1, 2), Fraction(0), Fraction(1, 10), Fraction(1, 3), Fraction(4, 5), Fraction(1)]


@dataclass(frozen=True)
class Sorted:
    numbers: Table

    @property
    def count(self) -> int:
        return len(self.numbers)

    def window(self, first: int, stop: int) -> Integers:
        padded = [
            0 if i < 1 else HIGH if i > self.count else self.numbers[i - 1]
            for i in range(first, stop)
        ]
        return np.array(padded, np.int64)


@cache
def tables(most: int) -> list[Table]:
    return [
        rows for count in range(most + 1) for rows in combinations_with_replacement(ALPHABET, count)
    ]


def near(rows: Table, relation: NeighbouringRelation, most: int) -> Iterator[Table]:
    for i in range(len(rows)):
        rest = rows[:i] + rows[i + 1 :]
        if relation is ADD_REMOVE:
            yield rest
        else:
            for number in ALPHABET:
                yield tuple(sorted((*rest, number)))
    if relation is ADD_REMOVE and len(rows) < most:
        for number in ALPHABET:
            yield tuple(sorted((*rows, number)))


def quantile(rows: Table, share: Fraction) -> int:
    rank = max(1, -(-share.numerator * len(rows) // share.denominator))
    return rows[rank - 1] if rank <= len(rows) else HIGH


def smooth(rows: Table, share: Fraction, relation: NeighbouringRelation, beta: float) -> float:
    kind = ReplaceBound if relation is REPLACE else AddRemoveBound
    return kind(Sorted(rows), share, HIGH).smooth(beta)


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("relation", RELATIONS)
def test_smooth_bounds_of_quantiles(relation: NeighbouringRelation, share: Fraction) -> None:
    most = 7
    for beta in (0.05, 0.4, 1.5):
        bound = {rows: smooth(rows, share, relation, beta) for rows in tables(most)}
        for rows, here in bound.items():
            assert here <= HIGH
            for other in near(rows, relation, most):
                assert here >= abs(quantile(rows, share) - quantile(other, share))
                assert here <= exp(beta) * bound[other] * (1 + 1e-12)


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("relation", RELATIONS)
def test_smooth_bounds_are_those_of_the_definition(
    relation: NeighbouringRelation, share: Fraction
) -> None:
    """S = max e^{−βs}·LS(s) over the true LS(s), every bound and number a value of its own."""
    most, farthest = 12, 6
    value = {rows: quantile(rows, share) for rows in tables(most)}
    beside = {rows: list(near(rows, relation, most)) for rows in value}
    local = [
        {
            rows: max((abs(value[rows] - value[other]) for other in beside[rows]), default=0)
            for rows in value
        }
    ]
    for _ in range(farthest):
        # The local sensitivity at distance s is the largest one at distance s − 1 of the dataset
        # and its neighbours.
        last = local[-1]
        local.append({r: max([last[r]] + [last[other] for other in beside[r]]) for r in value})
    for rows in tables(6):
        # Under add/remove the local sensitivity at distance s is exact while at least two rows
        # remain after s removals. From there on it is the global one.
        horizon = len(local) if relation is REPLACE else max(len(rows) - 1, 0)
        for beta in (0.1, 0.4, 1.0):
            bound = max([1.0] + [exp(-beta * s) * local[s][rows] for s in range(horizon)])
            if relation is ADD_REMOVE:
                bound = max(bound, exp(-beta * horizon) * HIGH)
            if relation is ADD_REMOVE or rows:
                assert smooth(rows, share, relation, beta) == pytest.approx(bound, rel=1e-9)


@pytest.mark.parametrize("relation", RELATIONS)
def test_exact_divergence_of_smooth_medians(relation: NeighbouringRelation) -> None:
    plan, statistic = Plan(0, HIGH), Median("x")
    for loss in (PrivacyLoss.parse("1", "0.001"), PrivacyLoss.parse("8", "0.1353")):
        laws = {}
        for rows in tables(6):
            dataset = table_dataset(relation, len(rows), 0.0, float(HIGH))
            measured = statistic.measure(context(table(rows), dataset), plan)
            assert measured.value == quantile(rows, Fraction(1, 2))
            rate = SmoothSensitivity().rate(measured, plan, loss)
            laws[rows] = (float(measured.value), float(rate.exponent()))
        pairs = {(laws[rows], laws[other]) for rows in laws for other in near(rows, relation, 6)}
        epsilon, delta = loss.epsilon_nano / NANO, loss.delta_atto / 1e18
        assert max(hockey_laplace(p, q, epsilon) for p, q in pairs) <= delta * (1 + 1e-9)


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("relation", RELATIONS)
def test_exponential_quantiles(relation: NeighbouringRelation, share: Fraction) -> None:
    statistic = Quantile("x", share)
    number = {rows: i for i, rows in enumerate(tables(5))}
    scores = []
    for rows in number:
        dataset = table_dataset(relation, len(rows), 0.0, float(HIGH))
        cells = statistic.cells(dataset)
        scores.append(statistic.rank_scores(context(table(rows), dataset), cells))
    matrix = np.array(scores)
    assert (matrix.max(axis=1) == 0).all()
    pairs = np.array(
        [(number[rows], number[other]) for rows in number for other in near(rows, relation, 5)]
    )
    sensitivity = statistic.rank_sensitivity(table_dataset(relation, 5))
    moved = np.abs(matrix[pairs[:, 0]] - matrix[pairs[:, 1]]).max()
    assert moved <= sensitivity
    some = pairs[:: max(len(pairs) // 150, 1)]
    base = Fraction(9, 10)
    assert not privacy_breach(matrix, some, exponential_probabilities, base, 2 * sensitivity)


@pytest.mark.parametrize("relation", RELATIONS)
def test_sums_and_means_move_by_their_sensitivity(relation: NeighbouringRelation) -> None:
    for lower, upper in ((0.0, 9.0), (-3.0, 9.0), (-20.0, 9.5)):
        for statistic in (Sum("x"), Mean("x")):
            value: dict[Table, list[int]] = {}
            plans: list[Plan] = []
            for rows in tables(4):
                dataset = table_dataset(relation, max(len(rows), 1), lower, upper)
                parts = statistic.parts(dataset)
                plans = [part.plan(dataset, NANO) for part in parts]
                value[rows] = [
                    part.measure(context(table(rows), dataset), plan).value
                    for part, plan in zip(parts, plans, strict=True)
                ]
            for rows in value:
                for other in near(rows, relation, 4):
                    for a, b, plan in zip(value[rows], value[other], plans, strict=True):
                        assert abs(a - b) <= plan.cap


PREFIXES = [
    [10.0, 20.0, 30.0, 100.0],
    [-50.0, -3.0, -3.0, 0.0, 0.0, 4.0, 50.0],
    [0.0, 0.0, 0.0, 2.5, 2.5, 70.0],
    [-9.0, -9.0, -1.0],
]


@pytest.mark.parametrize("values", PREFIXES)
def test_prefix_sums(values: list[float]) -> None:
    statistic, dataset = SmallestSum(), prefix_dataset(values)
    plan = statistic.plan(dataset, NANO)
    loss = PrivacyLoss.parse("1", "0.001")
    measured = [
        statistic.measure(context(prefix(k), dataset), plan) for k in range(len(values) + 1)
    ]
    steps = [m.value * float(plan.step) for m in measured]
    assert steps == pytest.approx([sum(values[:k]) for k in range(len(values) + 1)], abs=1e-6)
    for mechanism in (SmoothSensitivity(), LargestLocalSensitivities()):
        laws = [(float(m.value), float(mechanism.rate(m, plan, loss).exponent())) for m in measured]
        for p, q in pairwise(laws):
            assert abs(p[0] - q[0]) <= plan.cap
            assert hockey_laplace(p, q, 1.0) <= 0.001 * (1 + 1e-9)
            assert hockey_laplace(q, p, 1.0) <= 0.001 * (1 + 1e-9)
