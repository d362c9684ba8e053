"""The walk by runs against the plain steps of the sum, and dampened scores against each other."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.kernels.forests import Confusion
from mechanisms.kernels.rates import last_of_run, step
from mechanisms.model.domains import Dataset, NeighbouringRelation, TableDomain
from mechanisms.model.records import PrefixRecords
from mechanisms.model.sensitivity import Integers, Sensitivity
from mechanisms.objectives import Term, WeightedSum
from mechanisms.objectives.sum_sensitivity import SumSensitivity, WeightedMember
from mechanisms.selection.dampening import dampened_scores, flattened_scores
from mechanisms.trees.evolutionary.fitness import RATES
from mechanisms.utilities.covering import Stepwise
from mechanisms.utilities.rate_sensitivity import RateSensitivity
from mechanisms.utilities.tree_rates import CountedTrees, most_steps
from mechanisms.utilities.utility import Measurement
from tests.unit.mechanisms.trees.tables import ATTRIBUTES

ADD_REMOVE, REPLACE = NeighbouringRelation.ADD_REMOVE, NeighbouringRelation.REPLACE


def described(relation: NeighbouringRelation, rows: int) -> Dataset:
    bound: Any = {"rows": rows} if relation is REPLACE else {"max_rows": max(rows, 1)}
    return Dataset("x", relation, TableDomain(ATTRIBUTES, "paid", **bound))


def measured(
    relation: NeighbouringRelation,
    rows: int,
    counts: list[tuple[int, int]],
    weights: list[str],
    positives: int | None = None,
) -> Measurement:
    positives = rows // 3 if positives is None else positives
    negatives = rows - positives
    confusion = Confusion(
        np.array([tp % (positives + 1) for tp, _ in counts]),
        np.array([tn % (negatives + 1) for _, tn in counts]),
        positives,
        negatives,
    )
    public = described(relation, rows)
    terms = [
        Term(rate, Decimal(weight)) for rate, weight in zip(RATES.values(), weights, strict=True)
    ]
    objective = WeightedSum(terms)
    grid = objective.grid(public, CountedTrees(len(counts), confusion), Sensitivity.LOCAL)
    return objective.measure(
        PrefixRecords(0), public, CountedTrees(len(counts), confusion), Sensitivity.LOCAL, grid
    )


class Stepping(Stepwise):
    """The same δ, computed step by step as a plain sum."""

    def __init__(self, sums: SumSensitivity) -> None:
        self.cap, self.horizon = sums.cap, sums.horizon
        self.sums, self._count = sums, sums.count

    def at(self, t: int, candidates: Integers) -> Integers:
        return self.sums.at(t, candidates)

    def largest(self, t: int) -> int:
        return int(self.at(t, np.arange(self._count)).max())

    def shortfall(self) -> Integers:
        everyone = np.arange(self._count)
        missing: Integers = sum(self.cap - self.at(t, everyone) for t in range(self.horizon))
        return missing


class Plain(Stepwise):
    """One rate, without the walk by runs."""

    def __init__(self, rate: RateSensitivity, member: int) -> None:
        one = rate.hits[member], rate.totals[member]
        _, bits, self.cap, _ = rate.members[member].tolist()
        self.horizon = rate.horizon
        self._values = [
            [
                step(hits, total, bits, rate.replace, self.cap, t)
                for hits, total in zip(*one, strict=True)
            ]
            for t in range(rate.horizon)
        ]

    def at(self, t: int, candidates: Integers) -> Integers:
        return np.array(self._values[min(t, self.horizon - 1)], dtype=np.int64)[candidates]

    def largest(self, t: int) -> int:
        return max(self._values[t])


def stepping(rate: RateSensitivity) -> Stepping:
    """The same sum, rebuilt from the terms of a combined δ."""
    weighed = [
        WeightedMember(factor, Plain(rate, i), cap)  # type: ignore[arg-type]
        for i, (factor, _, cap, _) in enumerate(rate.members.tolist())
    ]
    groups = [[[one]] for one in weighed] if rate.replace else [[[one] for one in weighed]]
    return Stepping(SumSensitivity(groups, rate.cap, rate.horizon, rate.hits.shape[1]))


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from([ADD_REMOVE, REPLACE]),
    st.integers(1, 200),
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 200)), min_size=1, max_size=6),
    st.sampled_from([["1", "1"], ["3", "2"], ["-1", "0.5"], ["0", "1"], ["100", "1"]]),
)
def test_scores_are_those_of_single_steps(
    relation: NeighbouringRelation,
    rows: int,
    counts: list[tuple[int, int]],
    weights: list[str],
) -> None:
    result = measured(relation, rows, counts, weights)
    fast = result.delta
    assert isinstance(fast, RateSensitivity)
    slow = stepping(fast)
    for dampen in (dampened_scores, flattened_scores):
        assert (dampen(result.utilities, fast, 20) == dampen(result.utilities, slow, 20)).all()
    everyone = np.arange(len(counts))
    for t in range(rows + 3):
        assert (fast.at(t, everyone) == slow.at(t, everyone)).all()
        assert fast.largest(t) == slow.largest(t)
    assert (fast.shortfall() == slow.shortfall()).all()


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("bits", [1, 4, 10])
@pytest.mark.parametrize("total", [0, 1, 2, 3, 40, 41])
def test_a_run_ends_where_the_next_step_is_larger(total: int, bits: int, replace: bool) -> None:
    cap = 1 << bits if replace else 1 << bits - 1
    for hits in range(total + 1):
        values = [step(hits, total, bits, replace, cap, t) for t in range(total + 5)]
        for t, value in enumerate(values):
            end = last_of_run(hits, total, bits, replace, cap, t)
            assert end >= t
            assert all(later == value for later in values[t : end + 1])
            # A run is a range of distances t with equal δ. It may end too early only where the
            # formula for δ changes its form.
            if end + 1 < len(values) and values[end + 1] == value:
                assert end == min(hits, total - hits) - 1


@pytest.mark.parametrize(
    ("hits", "total", "bits"),
    # In these cases a quotient of doubles is just below a whole number, and the exact quotient is
    # just above it.
    [(27_130_098, 141_753_283, 34), (4_624_322, 143_323_822, 33), (3, 7, 33), (1, 1 << 26, 34)],
)
def test_a_step_is_the_exact_quotient_rounded_up(hits: int, total: int, bits: int) -> None:
    for t in (0, 1, 2, 1000):
        fewer = min(hits, total - hits)
        if t < fewer:
            exact = Fraction(total - fewer << bits, (total - t) * (total - t - 1))
        else:
            exact = Fraction(1 << bits, max(total - t, 2))
        assert step(hits, total, bits, False, 1 << bits, t) == math.ceil(exact)
        exact = Fraction(1 << bits, max(total - t, 1))
        assert step(hits, total, bits, True, 1 << bits, t) == math.ceil(exact)


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize("weights", [["1", "1"], ["3", "-2"], ["1", "20"], ["1", "0"]])
def test_walks_stay_within_their_public_bound(
    relation: NeighbouringRelation, weights: list[str]
) -> None:
    rows, most = 4000, 0
    for positives in (0, 1, 2, rows // 4, 2 * rows // 5, rows // 2, rows - 1, rows):
        ends = list(product((positives, positives // 2, 0), (rows - positives, rows // 3, 0)))
        result = measured(relation, rows, ends, weights, positives)
        assert isinstance(result.delta, RateSensitivity)
        factors, bits, *_ = result.delta.members.T.tolist()
        bound = most_steps(described(relation, rows), bits[0], factors)
        most = max(most, int(result.delta.passed(np.abs(result.utilities))[0].max()))
    assert most < bound
    # Under add/remove the bound on the steps is at most twice the steps needed. A loose bound would
    # make the deadline of a query far later than its work needs.
    assert relation is REPLACE or bound / 2 < most


def test_many_records_take_few_steps() -> None:
    rows = 9_000_000
    counts = [(2_000_000, 5_000_000), (10, rows), (rows, 0), *((i, rows // 3) for i in range(97))]
    result = measured(ADD_REMOVE, rows, counts, ["3", "2"])
    assert isinstance(result.delta, RateSensitivity)
    steps, rest, width = result.delta.passed(np.abs(result.utilities))
    assert (rest > 0).all()
    assert (rest <= width).all()
    short = result.delta.shortfall()
    horizon = result.delta.horizon
    for candidate in range(2):
        # δ summed over the distances that fit into a utility, plus the rest, is the utility. The
        # test compares this with a coarse integral of δ.
        total = integral(result.delta, candidate, int(steps[candidate])) + float(rest[candidate])
        assert total == pytest.approx(float(result.utilities[candidate]), rel=1e-3)
        # The shortfall is the sum, over all distances t, of what the sensitivity δ(t) lacks to its
        # cap. The reference is the coarse integral, and near the cap an exact sum.
        near = rows // 3 * 2 - 20_000
        total = near * result.delta.cap - integral(result.delta, candidate, near)
        one = np.array([candidate])
        for t in range(near, horizon):
            missing = result.delta.cap - int(result.delta.at(t, one)[0])
            if not missing:
                break
            total += missing
        assert total == pytest.approx(float(short[candidate]), rel=1e-3)


def integral(delta: RateSensitivity, candidate: int, end: int) -> float:
    at = np.linspace(0, end, 20_001).astype(int)
    values = np.array([delta.at(int(t), np.array([candidate]))[0] for t in at], float)
    return float(np.trapezoid(values, at))
