"""Tables with Gaussian noise: least noise for the charge, exact sums, intervals that hold."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import sqrt
from typing import Any

import numpy as np
import pytest

from accounting.composition import for_group, total, total_rho
from accounting.privacy_loss import PrivacyLoss
from mechanisms.model.domains import (
    Dataset,
    NeighbouringRelation,
    NumericAttribute,
    TableDomain,
)
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.executor import Inline
from mechanisms.noise import gaussian_sums
from mechanisms.noise.discrete_gaussian import MOST_STEPS, Deviation
from mechanisms.noise.gaussian_sums import (
    MOST_PLACES,
    half_width,
    places,
    sum_half_width,
    tails,
    variance,
)
from mechanisms.tables.aggregates import CountOf, MeanOf, QuantilesOf, SumOf, VarianceOf
from mechanisms.tables.grouping import Levels
from mechanisms.tables.noise import GaussianNoise
from mechanisms.tables.persons import PersonsOf
from mechanisms.tables.plan import TablePlan
from mechanisms.tables.request import MeasuredTotals
from tests.support.randomness import SeededRandomness
from tests.unit.mechanisms.tables.worlds import (
    ADD_REMOVE,
    REPLACE,
    columns,
    dataset_of,
    people,
    request,
)

RECORDS = people()
AGE = RECORDS.values["age"]
MISS = Fraction(1, 20)
RHO = PrivacyLoss(0, 0, 5 * 10**13, 1)
BOTH = pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])


@BOTH
def test_the_steps_are_the_charge_and_their_noise_is_the_least(
    relation: NeighbouringRelation,
) -> None:
    totals = MeasuredTotals((("sex",), ()), Fraction(1, 3))
    described = request([Levels("town"), Levels("sex")], [CountOf(), SumOf("age")], totals=totals)
    loss = PrivacyLoss(0, 0, 5 * 10**13 + 7, 1)
    plan = TablePlan(described, dataset_of(relation), loss)
    assert total(plan.steps()) == loss
    assert total_rho(plan.steps()) == loss.rho_femto
    for step in plan.steps():
        assert step.what.startswith("Gaussian noise: ")
        assert step.bound is not None
        assert step.bound.femto() <= step.rho_femto
        assert step.bound.femto() > step.rho_femto * 0.999
        assert step.as_dict()["epsilon"] is None
    for members in (2, 5):
        of_group = for_group(plan.steps(), members)
        assert total_rho(of_group) == loss.rho_femto * members**2
        assert all(one.bound.femto(members) <= one.rho_femto for one in of_group)  # type: ignore[union-attr]
    counts, changes = plan.measurements[0], 2 if relation is REPLACE else 1
    assert isinstance(counts.noise, GaussianNoise)
    assert (counts.noise.squares, counts.noise.shift) == (changes, 0)
    assert counts.noise.scale == pytest.approx(
        sqrt(changes / (2e-15 * counts.loss.rho_femto)), 1e-3
    )


def test_a_replaced_row_may_move_one_sum_by_both_changes() -> None:
    """Known to fail: Q = 2·cap² for a sum; a row goes from one bound to the other in its cell."""
    (sums,) = TablePlan(request([], [SumOf("height")]), dataset_of(REPLACE), RHO).measurements
    assert isinstance(sums.noise, GaussianNoise)
    largest = sums.part.largest(sums.grid, 2)
    multiple = -(-largest >> sums.noise.shift)
    assert sums.noise.squares >= multiple**2
    assert sums.noise.deviation.steps <= MOST_STEPS
    # The standard deviation σ is at least change/√(2ρ), for the most that one row changes the sum,
    # and at most 0.1 % more. So rounding to multiples hardly costs accuracy.
    least = largest / sqrt(2 * RHO.rho_femto / 1e15)
    assert 1 <= sums.noise.scale / least < 1.001


def test_numbers_are_rounded_down_once_and_before_their_noise() -> None:
    noise, values = GaussianNoise(Deviation(1), 1, shift=4), np.arange(-40, 40)
    assert (noise.add(values, SeededRandomness(0), Inline()) == values // 16 * 16).all()
    assert noise.half_width(1, MISS) == 16
    # Numbers are rounded down to multiples of 2^shift. ``squares`` is the largest sum of squared
    # changes by one row, counted in these multiples.
    assert GaussianNoise.of(10**18, [[17]]).shift == 0
    fine = GaussianNoise.of(2 * 10**12, [[1 << 20], [1 << 19, 1 << 19]])
    assert fine.squares == (1 << (20 - fine.shift)) ** 2
    assert fine.shift > 0


def test_a_rho_too_small_for_the_noise_is_refused_by_public_facts() -> None:
    for aggregates, rho in (([CountOf()], 10), ([CountOf(), SumOf("age")], 1)):
        plan = TablePlan(request([], aggregates), dataset_of(), PrivacyLoss(0, 0, rho, 1))
        with pytest.raises(UnsupportedQuery):
            plan.steps()


@BOTH
def test_intervals_hold_as_often_as_they_say(relation: NeighbouringRelation) -> None:
    derived = [
        CountOf(),
        SumOf("age"),
        MeanOf("age"),
        VarianceOf("age"),
        QuantilesOf("age", (0.5,)),
    ]
    described = request([Levels("town"), Levels("sex")], derived)
    dataset, random = dataset_of(relation), SeededRandomness(5)
    groups = product(range(4), range(2))
    masks = [(RECORDS.codes["town"] == t) & (RECORDS.codes["sex"] == s) for t, s in groups]
    exact = {
        "count": [one.sum() for one in masks],
        "sum(age)": [AGE[one].sum() for one in masks],
        "mean(age)": [AGE[one].mean() for one in masks],
        "variance(age)": [AGE[one].var() for one in masks],
        "quantile(age, 0.5)": [np.sort(AGE[one])[(one.sum() + 1) // 2 - 1] for one in masks],
    }
    runs: dict[str, list[Any]] = {name: [] for name in exact}
    whole: list[bool] = []
    for _ in range(80):
        table = columns(described, RECORDS, dataset, RHO, random)
        for name, column in table.table().items():
            truth = np.array(exact[name])
            runs[name].append((column.box.low <= truth) & (truth <= column.box.high))
        grand = next(one for margin, _, one in table.totals() if margin == ())["sum(age)"]
        whole.append(bool(grand.box.low[0] <= AGE.sum() <= grand.box.high[0]))
    for name, times in runs.items():
        assert np.mean(times) >= 0.935, name
    assert np.mean(runs["count"]) <= 0.975, "the intervals are the shortest"
    assert np.mean(runs["sum(age)"]) <= 0.97
    assert np.mean(whole) >= 0.87


@pytest.mark.parametrize("steps", [1, 300, 1024, 1500, 2047, 2048, 7253])
def test_widths_are_the_least_that_hold(steps: int) -> None:
    """Against the convolution of exact laws."""
    deviation = Deviation(steps)
    places = np.arange(-150, 151)
    single = np.exp(-(places**2) / (2 * float(deviation.square)))
    single /= single.sum()
    assert variance(deviation) == pytest.approx(max(1e-12, float(single @ places**2)), rel=1e-9)
    law = np.ones(1)
    for terms in range(1, 8):
        law = np.convolve(law, single)
        middle = len(law) // 2
        for miss in (MISS, Fraction(1, 1000)):
            m = half_width(deviation, terms, miss)
            assert law[middle - m : middle + m + 1].sum() >= 1 - miss
            assert m == 0 or law[middle - m + 1 : middle + m].sum() < 1 - miss


@pytest.mark.parametrize("steps", [(300, 1500), (300, 7253), (2048, 7253), (2500, 4000, 7253)])
def test_widths_of_sums_of_several_deviations_are_the_least_that_hold(
    steps: tuple[int, ...],
) -> None:
    noises = {Deviation(one): terms for terms, one in enumerate(steps, 1)}
    places, law = np.arange(-150, 151), np.ones(1)
    for deviation, terms in noises.items():
        single = np.exp(-(places**2) / (2 * float(deviation.square)))
        for _ in range(terms):
            law = np.convolve(law, single / single.sum())
    middle = len(law) // 2
    for miss in (MISS, Fraction(1, 1000)):
        m = sum_half_width(noises, miss)
        assert law[middle - m : middle + m + 1].sum() >= 1 - miss
        assert law[middle - m + 1 : middle + m].sum() < 1 - miss
    wide = {Deviation(MOST_STEPS): 1, Deviation(300): 2}
    assert sum_half_width(wide, MISS) == half_width(Deviation(MOST_STEPS), 1, MISS)


def test_wide_sums_are_normal() -> None:
    for steps, terms in ((MOST_STEPS, 1), (10**6, 2000), (2048, 10**6), (300, 10**5)):
        deviation = Deviation(steps)
        spread = sqrt(variance(deviation) * terms)
        assert half_width(deviation, terms, MISS) / spread == pytest.approx(1.95996, abs=2e-2)


def test_the_vectors_of_the_theory() -> None:
    beyond = tails(Deviation(1500), 1)
    assert beyond[0] - beyond[1] == pytest.approx(0.272344596754045, rel=1e-12)
    assert beyond[3] - beyond[4] == pytest.approx(0.0334454637420949, rel=1e-12)


def test_a_sum_of_few_steps_moves_by_both_changes_too() -> None:
    """Bounds so close that each row is a step or two from the middle: Q is 4·cap², not 2·cap²."""
    bounds = (1.7e9, 1.7e9 + 2.0**-5)
    domain = TableDomain((NumericAttribute("x", *bounds, bounds),), rows=2)
    dataset = Dataset("t", REPLACE, domain)
    sums, _ = TablePlan(request([], [MeanOf("x")]), dataset, RHO).measurements
    assert isinstance(sums.noise, GaussianNoise)
    assert (sums.noise.squares, sums.noise.shift) == (4 * sums.grid.cap**2, 0)


def test_persons_have_no_gaussian_noise() -> None:
    dataset = dataset_of(ADD_REMOVE)
    dataset = replace(dataset, domain=replace(dataset.domain, person="id"))  # type: ignore[type-var]
    plan = TablePlan(request([Levels("town")], [CountOf(), PersonsOf()]), dataset, RHO)
    with pytest.raises(UnsupportedQuery, match="not offered for persons"):
        plan.steps()


@pytest.mark.parametrize("steps", [1, 1024, 1500, 2048, 10**5, 2**20])
@pytest.mark.parametrize("terms", [1, 2, 700, 10**5])
def test_the_stated_work_bounds_the_law_that_is_written_down(
    steps: int, terms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, law = 0, gaussian_sums._law

    def counted(square: float) -> Any:
        nonlocal written
        masses = law(square)
        written += len(masses)
        return masses

    monkeypatch.setattr(gaussian_sums, "_law", counted)
    tails.cache_clear()
    half_width.cache_clear()
    half_width(Deviation(steps), terms, MISS)
    stated = places(Deviation(steps), terms)
    assert written <= stated
    assert terms > 1 or stated <= MOST_PLACES
    if terms > 1 and steps < 2048 and written:
        # The law of a sum of noises is computed by convolution on a circle, and has one probability
        # for each place on it.
        assert 2 * len(tails(Deviation(steps), terms)) <= stated
