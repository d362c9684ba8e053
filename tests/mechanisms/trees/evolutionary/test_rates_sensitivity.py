"""The walk by runs against the plain steps of the sum, and dampened scores against each other."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.dampening import dampened_scores, flattened_scores
from mechanisms.domains import Dataset, NeighbouringRelation, TableDomain
from mechanisms.kernels.forests import Confusion
from mechanisms.objectives import Term, WeightedSum
from mechanisms.objectives.sum_sensitivity import SumSensitivity
from mechanisms.records import PrefixRecords
from mechanisms.sensitivity import Sensitivity, WalkedSensitivity
from mechanisms.trees.evolutionary.fitness import RATES, CountedRate, Pool
from mechanisms.trees.evolutionary.rates_sensitivity import last_of_run, walked
from mechanisms.utilities.rate_sensitivity import step
from mechanisms.utilities.utility import Measured
from tests.mechanisms.trees.tables import ATTRIBUTES

ADD_REMOVE, REPLACE = NeighbouringRelation.ADD_REMOVE, NeighbouringRelation.REPLACE


def measured(
    relation: NeighbouringRelation, rows: int, counts: list[tuple[int, int]], weights: list[str]
) -> Measured:
    positives = rows // 3
    negatives = rows - positives
    found = Confusion(
        np.array([min(tp, positives) for tp, _ in counts]),
        np.array([min(tn, negatives) for _, tn in counts]),
        positives,
        negatives,
    )
    bound: Any = {"rows": rows} if relation is REPLACE else {"max_rows": max(rows, 1)}
    public = Dataset("x", relation, TableDomain(ATTRIBUTES, "paid", **bound))
    terms = [
        Term(CountedRate(rate, found), Decimal(weight))
        for rate, weight in zip(RATES.values(), weights, strict=True)
    ]
    objective = WeightedSum(terms)
    grid = objective.grid(public, Pool(len(counts)), Sensitivity.LOCAL)
    return objective.measure(PrefixRecords(0), public, Pool(len(counts)), Sensitivity.LOCAL, grid)


class Stepping:
    """The same δ without its walk."""

    def __init__(self, sums: SumSensitivity) -> None:
        self.cap, self.horizon = sums.cap, sums.horizon
        self.at, self.largest, self.shortfall = sums.at, sums.largest, sums.shortfall


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
    plain = measured(relation, rows, counts, weights)
    assert isinstance(plain.delta, SumSensitivity)
    fast = walked(plain).delta
    assert isinstance(fast, WalkedSensitivity)
    slow = Stepping(plain.delta)
    for dampen in (dampened_scores, flattened_scores):
        assert (dampen(plain.utilities, fast, 20) == dampen(plain.utilities, slow, 20)).all()
    everyone = np.arange(len(counts))
    assert (fast.at(3, everyone) == slow.at(3, everyone)).all()
    assert fast.largest(3) == slow.largest(3)
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
            # A run may only be cut where the formula changes its form.
            if end + 1 < len(values) and values[end + 1] == value:
                assert end == min(hits, total - hits) - 1


def test_many_records_take_few_steps() -> None:
    rows = 9_000_000
    plain = measured(ADD_REMOVE, rows, [(2_000_000, 5_000_000), (10, rows)], ["3", "2"])
    fast = walked(plain).delta
    assert isinstance(fast, WalkedSensitivity)
    steps, rest, width = fast.passed(np.abs(plain.utilities))
    assert (rest > 0).all()
    assert (rest <= width).all()
    for candidate in range(2):
        # The sum of all steps passed and the rest is the utility: by a coarse integral of δ.
        at = np.linspace(0, int(steps[candidate]), 20_001).astype(int)
        values = np.array([plain.delta.at(int(t), np.array([candidate]))[0] for t in at], float)
        total = float(np.trapezoid(values, at)) + float(rest[candidate])
        assert total == pytest.approx(float(plain.utilities[candidate]), rel=1e-3)
