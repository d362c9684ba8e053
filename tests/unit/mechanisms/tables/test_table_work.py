"""The stated work of columns bounds what their intervals take, counted and not timed."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from accounting.privacy_loss import NANO, PrivacyLoss
from mechanisms.model.domains import CategoricalAttribute, Dataset
from mechanisms.noise import laplace_sums
from mechanisms.noise.rate import Rate
from mechanisms.tables.aggregates import (
    CountOf,
    MeanOf,
    QuantilesOf,
    Summands,
    SumOf,
    VarianceOf,
)
from mechanisms.tables.grouping import Levels
from mechanisms.tables.noise import TRIES, LaplaceNoise
from mechanisms.tables.plan import TablePlan
from mechanisms.tables.request import MeasuredTotals, TableRequest
from mechanisms.tables.work import LOOK, column_work, looks, suppressed_looks
from tests.unit.mechanisms.tables.worlds import columns, dataset_of, people, request

ALL = [CountOf(), SumOf("age"), MeanOf("age"), VarianceOf("height"), QuantilesOf("age", (0.3, 0.5))]
BY = (Levels("town"), Levels("sex"), Levels("age"))
REQUESTS: dict[str, TableRequest] = {
    "one cell": request((), ALL),
    "sums": request(BY, ALL),
    "none": request(BY, ALL, totals="none"),
    "measured": request(
        BY, ALL, totals=MeasuredTotals(((), ("town",), ("town", "age")), Fraction(1, 3))
    ),
}


@pytest.mark.parametrize("nano", [1000, NANO, 10**5 * NANO])
@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize("suppressed", [False, True])
def test_work_bounds_the_looks_at_laws_and_the_bounds_of_quantiles(
    name: str, nano: int, suppressed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked, bounded, calls = 0, 0, 0
    tail, upper = laplace_sums.tail, LaplaceNoise.upper_bounds

    def counted_tail(rate: Rate, terms: int, distance: int) -> float:
        nonlocal looked
        looked += terms
        return tail(rate, terms, distance)

    def counted_bounds(self: LaplaceNoise, first: Any, *rest: Any) -> Any:
        nonlocal bounded, calls
        bounded += len(first) * TRIES
        calls += 1
        return upper(self, first, *rest)

    monkeypatch.setattr(laplace_sums, "tail", counted_tail)
    monkeypatch.setattr(LaplaceNoise, "upper_bounds", counted_bounds)
    laplace_sums.half_width.cache_clear()
    dataset, loss = dataset_of(), PrivacyLoss(nano)
    if suppressed:
        dataset = replace(dataset, minimum_count=11)
    described = REQUESTS[name].counted(dataset)
    table = columns(described, people(200), dataset, loss)
    table.table()
    list(table.totals())
    stated = column_work(TablePlan(described, dataset, loss))
    assert looked <= stated["widths of sums"].units
    # The width of the interval for a single noise has a closed form. Only sums of noises need a
    # search.
    assert (looked > 0) is (name in ("sums", "measured"))
    bounds = stated["bounds of quantiles"]
    assert (bounded, calls) == (bounds.units, bounds.calls)


@pytest.mark.parametrize("terms", [1, 2, 3, 64, 256, 1000])
@pytest.mark.parametrize("by_own_noise", [False, True])
def test_work_bounds_the_widths_of_sums_without_some_cells(
    terms: int, by_own_noise: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look has a fixed cost, which every power of 2 of cells pays again."""
    cost, tail = 0, laplace_sums.tail

    def counted_tail(rate: Rate, terms: int, distance: int) -> float:
        nonlocal cost
        cost += terms + LOOK
        return tail(rate, terms, distance)

    monkeypatch.setattr(laplace_sums, "tail", counted_tail)
    laplace_sums.half_width.cache_clear()
    noise = LaplaceNoise(Rate.of_counts(10**6, 1))
    Summands(np.arange(terms + 1), by_own_noise).half_widths(noise, terms, Fraction(1, 20))
    assert (cost > 0) is (terms > 1)
    assert cost <= suppressed_looks(noise, terms)


def wide(sizes: tuple[int, ...], aggregates: Any, totals: Any = "sums") -> TablePlan:
    names = [f"a{i}" for i in range(len(sizes))]
    levels = [
        CategoricalAttribute(one, tuple(map(str, range(size))))
        for one, size in zip(names, sizes, strict=True)
    ]
    people_of = dataset_of()
    domain = replace(people_of.domain, attributes=(*people_of.domain.attributes, *levels))
    dataset = Dataset("wide", people_of.neighbouring, domain)
    described = request([Levels(one) for one in names], aggregates, totals=totals)
    return TablePlan(described, dataset, PrivacyLoss(NANO))


def test_sums_over_many_cells_and_small_losses_are_counted() -> None:
    """Every look at the law of a sum passes over all of its terms."""
    units = [
        column_work(wide(s, [CountOf()]))["widths of sums"].units for s in ((3, 3), (300, 333))
    ]
    assert units[1] > 20 * 300 * 333
    assert units[0] < 100_000
    none = column_work(wide((300, 333), [CountOf()], "none"))["widths of sums"].units
    assert none < 100_000
    assert looks(LaplaceNoise(Rate(1, 1 << 40)), 1) > 3 * looks(LaplaceNoise(Rate(1, 1)), 1)


def test_every_margin_has_its_columns_shares_and_searches() -> None:
    plan = wide((2, 2, 2), [QuantilesOf("age", (0.1, 0.5, 0.9)), MeanOf("age")])
    stated, bins = column_work(plan), len(plan.measurements[0].part.edges) - 1  # type: ignore[attr-defined]
    assert stated["columns of tables"].calls == 8 * 4
    assert stated["bounds of quantiles"].units == 8 * 3 * bins * TRIES
    # The table of three attributes with two levels each and all its margins have (2 + 1)³ = 27
    # cells.
    assert stated["searches for quantiles"].units == 27 * 3 * bins


def test_bounds_of_many_edges_are_those_of_each_edge() -> None:
    noise, count = LaplaceNoise(Rate(1, 3)), 2500
    first = np.arange(1, count + 1)
    together = noise.upper_bounds(first, count - first, 0.7, 0.3, 0.01)
    for place in (0, 1023, 1024, 2047, 2499):
        alone = noise.upper_bounds(
            first[place : place + 1], count - first[place : place + 1], 0.7, 0.3, 0.01
        )
        assert together[place] == alone[0]
