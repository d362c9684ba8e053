"""Bounds between which no step of the grid lies, or which are too close to 0 for doubles."""

from __future__ import annotations

import io

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest

from accounting.privacy_loss import NANO, PrivacyLoss
from mechanisms.model.domains import (
    Dataset,
    NeighbouringRelation,
    NumericAttribute,
    TableDomain,
)
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.statistics import MECHANISMS
from mechanisms.statistics.predicate import Condition
from mechanisms.statistics.sums import Mean, Sum
from mechanisms.tables.aggregates import MeanOf, SumOf, VarianceOf
from mechanisms.tables.columns import TableColumns
from mechanisms.tables.plan import TablePlan
from mechanisms.tables.request import TableRequest
from mechanisms.tables.tabulate import release
from storage.ingest.made_up import MadeUpFormat, made_up
from tests.support.contexts import context
from tests.unit.mechanisms.statistics.worlds import RELATIONS, table, table_dataset

SMALL = PrivacyLoss(NANO // 10**6)
NARROW = [(1e6, 1e6 + 1), (-90.0, -89.9999), (1e5, 1e5 + 0.1)]
EVEN: Condition = {"attribute": "parity", "in": ["even"]}


def dataset_of(relation: NeighbouringRelation, bounds: tuple[float, float]) -> Dataset:
    return table_dataset(relation, 3, *bounds)


@pytest.mark.parametrize("bounds", NARROW)
@pytest.mark.parametrize("where", [None, EVEN])
@pytest.mark.parametrize("relation", RELATIONS)
def test_a_mean_between_close_bounds_is_in_its_interval(
    relation: NeighbouringRelation, where: Condition | None, bounds: tuple[float, float]
) -> None:
    lower, upper = bounds
    dataset, laplace, mean = dataset_of(relation, bounds), MECHANISMS["laplace"], Mean("x", where)
    assert not mean.parts(dataset)[0].plan(dataset, SMALL.epsilon_nano // 2).cap
    for numbers in ([lower] * 3, [upper] * 3, [lower, upper, upper]):
        answer = laplace.answer(mean, context(table(numbers), dataset, SMALL))
        low, high = answer.number.low, answer.number.high
        assert low is not None
        assert high is not None
        assert lower == low <= answer.number.value <= high == upper
    assert laplace.accuracy(mean, dataset, SMALL)
    assert sum((step.total() for step in laplace.steps(mean, dataset, SMALL)), PrivacyLoss(0)) == (
        SMALL
    )


def test_a_sum_between_close_bounds_needs_no_noise_where_the_rows_are_public() -> None:
    (lower, upper), laplace = NARROW[0], MECHANISMS["laplace"]
    dataset = dataset_of(NeighbouringRelation.REPLACE, (lower, upper))
    for numbers in ([lower] * 3, [upper] * 3):
        number = laplace.answer(Sum("x"), context(table(numbers), dataset, SMALL)).number
        assert number.low is not None
        assert number.high is not None
        assert number.low <= sum(numbers) <= number.high


@pytest.mark.parametrize("upper", [1e-140, 1e-150, 1e-300, 1e-310, 5e-324])
@pytest.mark.parametrize("relation", RELATIONS)
def test_numbers_too_small_for_doubles_are_refused_before_they_are_charged(
    relation: NeighbouringRelation, upper: float
) -> None:
    """A step of 0 would make a variance no number, after the charge."""
    dataset, records = dataset_of(relation, (0.0, upper)), table([0.0, upper, upper])
    refused = 0
    for loss in (SMALL, PrivacyLoss(NANO)):
        for one in (SumOf("x"), MeanOf("x"), VarianceOf("x")):
            plan = TablePlan(TableRequest((), (one,), (None,)), dataset, loss)
            try:
                plan.steps()
            except UnsupportedQuery:
                refused += 1
                continue
            columns = TableColumns(plan, release(context(records, dataset, loss), plan)).table()
            (column,) = columns.values()
            assert np.isfinite([column.value, column.box.low, column.box.high]).all()
            assert (column.box.low <= column.box.high).all()
        for statistic in (Sum("x"), Mean("x")):
            laplace = MECHANISMS["laplace"]
            try:
                laplace.steps(statistic, dataset, loss)
            except UnsupportedQuery:
                refused += 1
                continue
            assert laplace.answer(statistic, context(records, dataset, loss)).number.low is not None
    assert (refused > 0) == (upper < 1e-140)


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("upper", [1e-290, 1e-310, 5e-324])
def test_made_up_numbers_between_close_bounds_are_numbers(upper: float, form: MadeUpFormat) -> None:
    attribute = NumericAttribute("x", 0.0, upper, (0.0, upper))
    file = io.BytesIO(made_up(TableDomain((attribute,), max_rows=9), 9, form))
    column = (pyarrow.csv.read_csv if form == "csv" else pyarrow.parquet.read_table)(file)["x"]
    assert all(0 <= number <= upper for number in column.to_pylist())
