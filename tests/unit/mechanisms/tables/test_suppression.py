"""Small cells come back suppressed, and no total that is shown gives them away by subtraction."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting.privacy_loss import NANO, PrivacyLoss
from mechanisms.model.domains import Dataset
from mechanisms.noise.rate import Rate
from mechanisms.tables.aggregates import (
    Aggregate,
    CountOf,
    MeanOf,
    QuantilesOf,
    Summands,
    SumOf,
    VarianceOf,
)
from mechanisms.tables.columns import Columns
from mechanisms.tables.grouping import Levels
from mechanisms.tables.noise import LaplaceNoise
from mechanisms.tables.parts import Count
from mechanisms.tables.plan import TablePlan
from mechanisms.tables.request import MeasuredTotals
from mechanisms.tables.suppression import lines, suppressed
from tests.support.randomness import SeededRandomness
from tests.unit.mechanisms.tables.worlds import columns, dataset_of, people, request

RECORDS = people(400)
BY = (Levels("town"), Levels("sex"))
CODES = RECORDS.codes["town"].astype(np.int64) * 2 + RECORDS.codes["sex"]
COUNTS = np.bincount(CODES, minlength=8)
AGE = RECORDS.values["age"]
#: The least count at which a cell is shown. Some cells have fewer rows, and some have not.
MINIMUM = int(np.sort(COUNTS)[3])
SMALL = COUNTS < MINIMUM
ALL: tuple[Aggregate, ...] = (
    *(CountOf(), SumOf("age"), MeanOf("age"), VarianceOf("age")),
    QuantilesOf("age", (0.5,)),
)


def policy(minimum: int = MINIMUM) -> Dataset:
    return replace(dataset_of(), minimum_count=minimum)


def released(**options: Any) -> tuple[Columns, dict[tuple[str, ...], Columns]]:
    described = request(BY, ALL, **options)
    table = columns(described, RECORDS, policy(), randomness=SeededRandomness(1))
    return table.table(), {margin: numbers for margin, _, numbers in table.totals()}


def test_small_cells_are_suppressed_in_every_column_and_left_out_of_sums() -> None:
    cells, totals = released()
    assert SMALL.any()
    assert not SMALL.all()
    for column in cells.values():
        assert column.suppressed is not None
        assert (column.suppressed == SMALL).all()
    visible = ~SMALL[CODES]
    for margin, codes in (((), 0 * CODES), (("town",), CODES // 2), (("sex",), CODES % 2)):
        rows = np.bincount(codes[visible], minlength=codes.max() + 1)
        ages = np.bincount(codes[visible], AGE[visible], minlength=codes.max() + 1)
        marks = totals[margin]["count"].suppressed
        assert marks is not None
        assert (marks == (rows == 0)).all()
        assert (totals[margin]["count"].value == rows).all()
        assert totals[margin]["sum(age)"].value == pytest.approx(ages, rel=1e-4)
        means = totals[margin]["mean(age)"].value
        assert means[~marks] == pytest.approx(ages[~marks] / rows[~marks], rel=1e-4)
    assert totals[()]["quantile(age, 0.5)"].value[0] == pytest.approx(
        np.median(AGE[visible]), rel=0.2
    )


@pytest.mark.parametrize("consistent", [True, False])
def test_a_measured_total_takes_a_second_cell_with_it(consistent: bool) -> None:
    measured = MeasuredTotals((("town",), ()), Fraction(1, 2))
    cells, totals = released(totals=measured, consistent=consistent)
    marks = cells["count"].suppressed
    assert marks is not None
    assert (marks >= SMALL).all()
    towns = marks.reshape(4, 2).sum(axis=1)
    assert (marks > SMALL).any()
    for town, total in zip(towns, totals["town",]["count"].suppressed, strict=True):  # type: ignore[arg-type]
        assert total or town != 1
    # A total that is measured itself counts all its rows. A total that is added up from cells lacks
    # the suppressed ones.
    visible = np.where(marks, 0, COUNTS).reshape(4, 2)
    assert totals[()]["count"].value[0] == pytest.approx(COUNTS.sum())
    assert totals["sex",]["count"].value == pytest.approx(visible.sum(axis=0))


def test_a_margin_without_any_cell_is_suppressed() -> None:
    described = request(BY, [CountOf()])
    table = columns(described, RECORDS, policy(1000), randomness=SeededRandomness(1))
    assert all(numbers["count"].suppressed.all() for _, _, numbers in table.totals())  # type: ignore[union-attr]


def test_without_the_policy_nothing_is_marked() -> None:
    table = columns(request(BY, ALL), RECORDS, dataset_of(), randomness=SeededRandomness(1))
    assert all(column.suppressed is None for column in table.table().values())


def test_a_table_of_sums_measures_a_count_too() -> None:
    loss = PrivacyLoss(NANO)
    alone = request(BY, [SumOf("age"), QuantilesOf("age", (0.5,))])
    described = alone.counted(policy())
    assert described.aggregates[-1] == CountOf()
    assert described.shares == (None, None, Fraction(1, 3))
    steps = TablePlan(described, policy(), loss).steps()
    assert sum((step.loss for step in steps), PrivacyLoss(0)) == loss
    declared = request(BY, [SumOf("age")], shares=(Fraction(1),)).counted(policy())
    assert declared.shares == (Fraction(1, 2), Fraction(1, 2))
    assert sum(declared.weights(policy()).values()) == 1
    mean = request(BY, [MeanOf("age")])
    assert mean.counted(policy()) == mean
    assert (Count(), None) in mean.weights(policy())
    assert alone.counted(dataset_of()) == alone


@given(
    st.lists(st.integers(2, 4), min_size=1, max_size=3),
    st.integers(0, 1000),
    st.integers(0, 6),
)
def test_no_shown_total_sums_exactly_one_suppressed_number(
    shape: list[int], seed: int, minimum: int
) -> None:
    counts = np.random.default_rng(seed).integers(0, 10, shape).astype(float)
    axes = tuple(range(len(shape)))
    margins = [(), *[(axis,) for axis in axes if len(axes) > 1], *[(0, 1)] * (len(axes) > 2)]
    tables = {axes: [counts]}
    for margin in margins:
        others = tuple(axis for axis in axes if axis not in margin)
        tables[margin] = [np.asarray(counts.sum(axis=others))]
    hidden = suppressed(tables, minimum)
    for fine, values in tables.items():
        assert (hidden[fine] >= (values[0] < minimum)).all()
        if not any((own[0] < minimum).any() for own in tables.values()):
            assert not hidden[fine].any()
        for coarse in tables:
            if set(coarse) < set(fine):
                together = lines(hidden[fine], fine, coarse).sum(axis=-1)  # type: ignore[arg-type]
                assert (hidden[coarse] | (together != 1)).all()


@pytest.mark.parametrize("by_own_noise", [True, False])
def test_totals_of_chosen_cells_have_intervals_that_hold(by_own_noise: bool) -> None:
    """10,000 sums of 12 cells whose true counts are the minimum: about half are left out.

    A choice by the noise of the sums makes them too high, and the plain interval of a sum misses
    many of them. False alarm: below 10⁻⁹ for a chance of 5 %.
    """
    random, runs, terms, rate = np.random.default_rng(3), 10_000, 12, Rate.of_counts(NANO // 2)
    step = -np.expm1(-float(rate.exponent()))
    first, second = random.geometric(step, (2, runs, terms)) - 1
    noise, other = first - second, random.random((runs, terms)) < 0.5
    chosen = noise >= 0 if by_own_noise else other
    terms_each, law = chosen.sum(axis=1), LaplaceNoise(rate)
    widths = Summands(terms_each, by_own_noise).half_widths(law, terms, Fraction(1, 20))
    misses = np.abs((noise * chosen).sum(axis=1)) > widths
    assert misses.mean() < 0.05 + 6 * (0.05 * 0.95 / runs) ** 0.5
    naive = [law.half_width(int(one), Fraction(1, 20)) if one else 0 for one in terms_each]
    naive_misses = (np.abs((noise * chosen).sum(axis=1)) > naive).mean()
    assert bool(naive_misses > 0.1) is by_own_noise
