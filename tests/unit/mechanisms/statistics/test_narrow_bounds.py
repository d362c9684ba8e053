"""Bounds between which no step of the grid lies: the sum is the same for all records."""

from __future__ import annotations

import pytest

from accounting.privacy_loss import NANO, PrivacyLoss
from mechanisms.model.domains import Dataset, NeighbouringRelation
from mechanisms.statistics import MECHANISMS
from mechanisms.statistics.predicate import Condition
from mechanisms.statistics.sums import Mean, Sum
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
