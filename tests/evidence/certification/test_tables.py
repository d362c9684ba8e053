"""Tables are private: every small dataset, every neighbour, the exact law of the release.

A release is independent discrete Laplace noise of rate λ_i on the numbers of each measurement i.
The largest log ratio of the laws of two datasets x and y over all outputs is therefore exactly
Σ λ_i·‖v_i(x) − v_i(y)‖₁. It is compared with ε in rationals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest

from accounting.privacy_loss import NANO, PrivacyLoss
from mechanisms.model.domains import (
    CategoricalAttribute,
    Dataset,
    NeighbouringRelation,
    NumericAttribute,
    TableDomain,
)
from mechanisms.model.executor import Executor
from mechanisms.model.randomness import Randomness
from mechanisms.model.records import TableRecords
from mechanisms.noise.addition import Integers
from mechanisms.tables.aggregates import CountOf, MeanOf, QuantilesOf, SumOf, VarianceOf
from mechanisms.tables.grouping import Chapters, Edges, Levels
from mechanisms.tables.noise import LaplaceNoise
from mechanisms.tables.plan import TablePlan
from mechanisms.tables.request import MeasuredTotals, TableRequest
from mechanisms.tables.tabulate import ReleasedTable, release
from tests.support.contexts import context

ADD_REMOVE, REPLACE = NeighbouringRelation.ADD_REMOVE, NeighbouringRelation.REPLACE
RELATIONS = (ADD_REMOVE, REPLACE)
LOSS = PrivacyLoss(NANO)
#: A row: the value of attribute A, a number between −2 and 6, and the bin of the number; bin 2
#: stands for a missing number.
Row = tuple[int, float, int]
ROWS: list[Row] = sorted(
    [(0, -2.0, 0), (0, 6.0, 1), (1, -2.0, 0), (1, 6.0, 1), (0, 2.0, 2), (1, 0.5, 1)]
)
Members = tuple[Row, ...]
MOST = 3


def dataset(relation: NeighbouringRelation) -> Dataset:
    attributes = (
        CategoricalAttribute("A", ("0", "1")),
        NumericAttribute("x", -2.0, 6.0, (-2.0, 0.5, 6.0), missing="-"),
    )
    rows = {"rows": MOST} if relation is REPLACE else {"max_rows": MOST}
    return Dataset("table", relation, TableDomain(attributes, **rows))


def records(rows: Members) -> TableRecords:
    a, x, bins = (list(column) for column in zip(*rows, strict=True)) if rows else ([], [], [])
    codes = {"A": np.array(a, np.uint8), "x": np.array(bins, np.uint8)}
    return TableRecords(codes, {"x": np.array(x, np.float64)})


def members(relation: NeighbouringRelation) -> list[Members]:
    sizes = [MOST] if relation is REPLACE else range(MOST + 1)
    return [rows for size in sizes for rows in combinations_with_replacement(ROWS, size)]


def neighbours(rows: Members, relation: NeighbouringRelation) -> Iterator[Members]:
    for i in range(len(rows)):
        rest = rows[:i] + rows[i + 1 :]
        if relation is ADD_REMOVE:
            yield rest
        else:
            yield from (tuple(sorted((*rest, row))) for row in ROWS)


def described(by: Sequence[Any], aggregates: Sequence[Any], **options: Any) -> TableRequest:
    shares: tuple[None, ...] = (None,) * len(aggregates)
    return TableRequest(tuple(by), tuple(aggregates), **{"shares": shares, **options})


WHERE = {"attribute": "x", "from": 0}
REQUESTS = {
    "one cell": described([], [CountOf()]),
    "count": described([Levels("A"), Levels("x")], [CountOf()]),
    "sum": described([Levels("A")], [SumOf("x")]),
    "sum of one cell": described([], [SumOf("x")]),
    "all": described(
        [Chapters("A", {"one": ("1",)}), Edges("x", (-2.0, 1.0, 5.0))],
        [CountOf(), SumOf("x"), MeanOf("x"), VarianceOf("x"), QuantilesOf("x", (0.5,))],
    ),
    "shares": described(
        [Levels("A")], [CountOf(), MeanOf("x")], shares=(Fraction(1, 10), None), where=WHERE
    ),
    "margins": described(
        [Levels("A"), Levels("x")],
        [CountOf(), SumOf("x")],
        totals=MeasuredTotals((("A",), ()), Fraction(1, 3)),
        consistent=True,
    ),
}


class Silent(LaplaceNoise):
    """The same rates, and no noise: what is released are the exact numbers."""

    def add(self, values: Integers, randomness: Randomness, executor: Executor) -> Integers:
        del randomness, executor
        return values


Vector = tuple[tuple[int, ...], ...]
Release = dict[Members, Vector]


def exact(plan: TablePlan, relation: NeighbouringRelation) -> Release:
    """The exact numbers of every measurement of every dataset."""
    return {
        rows: vectors(plan, release(context(records(rows), plan.dataset, plan.loss), plan))
        for rows in members(relation)
    }


def vectors(plan: TablePlan, released: ReleasedTable) -> Vector:
    return tuple(
        tuple(
            (
                released.cells[one.part]
                if one.margin is None
                else released.margins[one.part, one.margin]
            )
            .ravel()
            .tolist()
        )
        for one in plan.measurements
    )


def rates(plan: TablePlan) -> list[Fraction]:
    return [one.noise.rate.exponent() for one in plan.measurements]  # type: ignore[attr-defined]


def loss_of(values: Release, of: list[Fraction], relation: NeighbouringRelation) -> Fraction | None:
    """The largest log ratio over all neighbours; None if some outputs of one lack in the other."""
    worst = Fraction(0)
    for rows, here in values.items():
        for other in neighbours(rows, relation):
            there = values[other]
            if [len(one) for one in here] != [len(one) for one in there]:
                return None
            ratio = sum(
                rate * sum(abs(a - b) for a, b in zip(p, q, strict=True))
                for rate, p, q in zip(of, here, there, strict=True)
            )
            worst = max(worst, Fraction(ratio))
    return worst


@cache
def silent(name: str, relation: NeighbouringRelation) -> tuple[TablePlan, Release]:
    plan = TablePlan(REQUESTS[name], dataset(relation), LOSS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LaplaceNoise, "add", Silent.add)
        return plan, exact(plan, relation)


@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize("relation", RELATIONS)
def test_the_loss_of_every_table_is_at_most_epsilon(
    name: str, relation: NeighbouringRelation
) -> None:
    plan, values = silent(name, relation)
    loss = loss_of(values, rates(plan), relation)
    assert loss is not None
    assert loss <= 1
    if name in ("count", "sum"):
        assert loss > Fraction(99, 100), "the bound is attained: no loss is paid in vain"


def test_counts_at_rate_epsilon_under_replace_are_rejected() -> None:
    plan, values = silent("count", REPLACE)
    loss = loss_of(values, rates(silent("count", ADD_REMOVE)[0]), REPLACE)
    assert loss is not None
    assert loss > Fraction(3, 2)
    assert plan.measurements[0].noise.scale > 1.9


def test_sums_with_the_cap_of_one_bound_under_replace_are_rejected() -> None:
    _, values = silent("sum", REPLACE)
    loss = loss_of(values, rates(silent("sum", ADD_REMOVE)[0]), REPLACE)
    assert loss is not None
    assert loss > 1


def test_cells_taken_from_the_data_are_rejected() -> None:
    """Only cells with rows are released: their number depends on the rows."""
    plan, values = silent("count", ADD_REMOVE)
    occupied = {
        rows: tuple(tuple(count for count in vector if count) for vector in vectors)
        for rows, vectors in values.items()
    }
    assert loss_of(occupied, rates(plan), ADD_REMOVE) is None


def test_a_margin_at_the_loss_of_the_cells_is_rejected() -> None:
    plan, values = silent("margins", ADD_REMOVE)
    of_cells = {one.part: rate for one, rate in zip(plan.measurements, rates(plan), strict=True)}
    free = [of_cells[one.part] if one.margin is None else Fraction(1) for one in plan.measurements]
    loss = loss_of(values, free, ADD_REMOVE)
    assert loss is not None
    assert loss > 1


def test_the_noise_is_drawn_once_for_every_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each measurement adds the noise of its own rate to all its numbers, and nothing else."""
    drawn: list[tuple[Fraction, int]] = []
    honest = LaplaceNoise.add

    def spied(
        self: LaplaceNoise, values: Integers, randomness: Randomness, executor: Executor
    ) -> Integers:
        drawn.append((self.rate.exponent(), values.size))
        return honest(self, values, randomness, executor)

    monkeypatch.setattr(LaplaceNoise, "add", spied)
    for name, relation in product(REQUESTS, RELATIONS):
        plan, values = silent(name, relation)
        rows = members(relation)[-1]
        drawn.clear()
        released = release(context(records(rows), plan.dataset, LOSS), plan)
        sizes = [len(vector) for vector in values[rows]]
        assert drawn == list(zip(rates(plan), sizes, strict=True))
        assert [len(vector) for vector in vectors(plan, released)] == sizes
