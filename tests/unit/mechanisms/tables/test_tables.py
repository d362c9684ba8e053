"""Tables agree with plain arithmetic where noise is absent, and their intervals hold with it."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from accounting.composition import total
from accounting.privacy_loss import NANO, PrivacyLoss
from app.queries.table.answer import answer_of
from mechanisms.model.domains import (
    CategoricalAttribute,
    Dataset,
    NeighbouringRelation,
    TableDomain,
)
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.executor import Inline
from mechanisms.model.records import TableRecords
from mechanisms.noise.laplace_sums import half_width, tail
from mechanisms.noise.rate import Rate
from mechanisms.tables.aggregates import CountOf, MeanOf, QuantilesOf, SumOf, VarianceOf
from mechanisms.tables.columns import Column, TableColumns
from mechanisms.tables.consistency import MeasuredMargin, adjusted
from mechanisms.tables.grouping import Chapters, Edges, Levels
from mechanisms.tables.noise import LaplaceNoise
from mechanisms.tables.plan import TablePlan
from mechanisms.tables.request import MeasuredTotals
from mechanisms.tables.tabulate import release
from tests.support.contexts import context
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
ALL = [CountOf(), SumOf("age"), MeanOf("age"), VarianceOf("age"), QuantilesOf("age", (0.3, 0.5))]
#: The groups of a table are chapters of towns, and ranges of ages whose edges are not those of the
#: domain. ``MASKS`` marks the rows of each group.
BY = (
    Chapters("town", {"coast": ("c", "?"), "inland": ("a",)}),
    Edges("age", (10.0, 30.0, 90.0)),
)
MASKS = [
    town & ages
    for town, ages in product(
        [np.isin(RECORDS.codes["town"], [2, 3]), RECORDS.codes["town"] == 0],
        [(AGE >= 10) & (AGE < 30), (AGE >= 30) & (AGE <= 90)],
    )
]
WHERE = {"attribute": "sex", "in": ["m"]}
MALE = RECORDS.codes["sex"] == 1


def truths(masks: list[Any]) -> dict[str, list[float]]:
    return {
        "count": [int(one.sum()) for one in masks],
        "sum(age)": [AGE[one].sum() for one in masks],
        "mean(age)": [AGE[one].mean() for one in masks],
        "variance(age)": [AGE[one].var() for one in masks],
    }


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
def test_without_noise_cells_and_totals_are_those_of_the_rows(
    relation: NeighbouringRelation,
) -> None:
    described = request(BY, ALL, where=WHERE)
    table = columns(described, RECORDS, dataset_of(relation), randomness=SeededRandomness(1))
    masks = [one & MALE for one in MASKS]
    check(table.table(), masks)
    margins = {margin: numbers for margin, _, numbers in table.totals()}
    assert margins.keys() == {(), ("town",), ("age",)}
    check(margins["town",], [masks[0] | masks[1], masks[2] | masks[3]])
    check(margins["age",], [masks[0] | masks[2], masks[1] | masks[3]])
    check(margins[()], [np.any(masks, axis=0)])


def check(table: Any, masks: list[Any]) -> None:
    for name, values in truths(masks).items():
        assert table[name].value == pytest.approx(values, rel=1e-4), name
        assert (table[name].box.low <= np.array(values) + 1e-6).all()
        assert (table[name].box.high >= np.array(values) - 1e-6).all()
    for share in (0.3, 0.5):
        column = table[f"quantile(age, {share})"]
        exact = [np.sort(AGE[one])[int(np.ceil(share * one.sum())) - 1] for one in masks]
        assert (column.box.low <= exact).all()
        assert (column.box.high >= exact).all()
        assert ((column.box.low <= column.value) & (column.value <= column.box.high)).all()


def test_missing_numbers_have_a_cell_and_count_as_the_middle() -> None:
    """Their own group in ``by``, none among the bins of quantiles."""
    described = request([Edges("height", (0.0, 1.0, 3.0))], [CountOf(), SumOf("height")])
    table = columns(described, RECORDS, dataset_of()).table()
    height, codes = RECORDS.values["height"], RECORDS.codes["height"]
    numbers = codes != 2
    masks = [(height >= 0) & (height < 1) & numbers, (height >= 1) & numbers, ~numbers]
    assert table["count"].value.tolist() == [one.sum() for one in masks]
    assert table["sum(height)"].value == pytest.approx([height[one].sum() for one in masks])
    plan = TablePlan(described, dataset_of(), PrivacyLoss(NANO))
    assert plan.labels == {"height": ("[0,1)", "[1,3]", "-")}
    quantiles = request([], [QuantilesOf("height", (0.5,), (-1.0, 0.0, 1.0, 3.0))])
    column = columns(quantiles, RECORDS, dataset_of()).table()["quantile(height, 0.5)"]
    exact = np.sort(height[numbers])[int(np.ceil(numbers.sum() / 2)) - 1]
    assert column.box.low[0] <= exact <= column.box.high[0]


def test_every_cell_of_the_public_domain_is_there_without_any_row() -> None:
    empty = TableRecords(
        {name: codes[:0] for name, codes in RECORDS.codes.items()},
        {name: numbers[:0] for name, numbers in RECORDS.values.items()},
    )
    described = request([Levels("town"), Levels("age")], ALL)
    table = columns(described, empty, dataset_of()).table()
    assert {column.value.shape for column in table.values()} == {(12,)}
    assert table["mean(age)"].value == pytest.approx(50, abs=0.01)
    assert table["quantile(age, 0.5)"].value.tolist() == [50.0] * 12


def test_measured_margins_agree_with_the_cells_once_adjusted() -> None:
    totals = MeasuredTotals((("sex",), ()), Fraction(1, 2))
    described = request(
        [Levels("town"), Levels("sex")], [CountOf(), SumOf("age")], totals=totals, consistent=True
    )
    table = columns(described, RECORDS, dataset_of(), PrivacyLoss(NANO // 10))
    cells = table.table()["count"]
    assert cells.raw is not None
    assert (cells.box.low < cells.raw).all()
    assert (cells.raw < cells.box.high).all()
    margins = {margin: (measured, numbers) for margin, measured, numbers in table.totals()}
    assert [one for one, (measured, _) in margins.items() if measured] == [(), ("sex",)]
    by_sex = margins["sex",][1]["count"]
    assert np.allclose(cells.value.reshape(4, 2).sum(axis=0), by_sex.value)
    assert by_sex.raw is not None
    assert not np.allclose(cells.raw.reshape(4, 2).sum(axis=0), by_sex.raw), "it has its own noise"


def test_one_charge_for_all_cells_beats_separate_counts() -> None:
    """Sex × education × income at ε, against a count of each of the 64 cells at ε/64."""
    levels = {"sex": 2, "education": 16, "income": 2}
    by = [Levels(name) for name in levels]
    attributes = (CategoricalAttribute(name, (*map(str, range(n)),)) for name, n in levels.items())
    adult = Dataset("adult", ADD_REMOVE, TableDomain((*attributes,), max_rows=50_000))
    empty = TableRecords({name: np.zeros(0, np.uint8) for name in levels}, {})
    loss, draws = PrivacyLoss(NANO), SeededRandomness(6)

    def errors(by: list[Any], share: PrivacyLoss) -> Any:
        described = request(by, [CountOf()])
        assert total(TablePlan(described, adult, share).steps()) == share
        return columns(described, empty, adult, share, draws).table()["count"].value.ravel()

    together = errors(by, loss)
    separate = np.concatenate([errors([], share) for share in loss.split(64)])
    assert len(together) == len(separate) == 64
    together_rmse, separate_rmse = (np.sqrt(np.square(one).mean()) for one in (together, separate))
    assert together_rmse <= separate_rmse / 20


def test_nothing_private_is_read_after_the_release() -> None:
    """Columns, totals and adjustments are the same after all records are gone."""
    records = people()
    totals = MeasuredTotals((("town",), ()), Fraction(1, 3))
    described = request([Levels("town"), Levels("sex")], ALL, totals=totals, consistent=True)
    loss = PrivacyLoss(NANO)
    plan = TablePlan(described, dataset_of(), loss)
    released = release(context(records, plan.dataset, loss, SeededRandomness(7)), plan)
    before = answer_of(plan, TableColumns(plan, released))
    for column in (*records.codes.values(), *records.values.values()):
        column[:] = 0
    records.codes.clear()
    records.values.clear()
    assert answer_of(plan, TableColumns(plan, released)) == before


def test_a_measured_margin_beats_adding_cells() -> None:
    """A margin at share 1/2 of a 16 × 10 table, against sums of cells at the whole loss."""
    random, none = SeededRandomness(3), np.zeros(160, np.int64)
    half, whole = (LaplaceNoise(Rate.of_counts(nano)) for nano in (NANO // 20, NANO // 10))
    squares = []
    for _ in range(300):
        added = whole.add(none, random, Inline()).reshape(16, 10).sum(axis=1)
        cells = half.add(none, random, Inline()).reshape(16, 10)
        measured = half.add(none[:16], random, Inline())
        margin = MeasuredMargin((0,), measured, half.variance)
        fitted = adjusted(cells, half.variance, [margin], 2).sum(axis=1)
        squares.append((np.square(added).mean(), np.square(fitted).mean()))
    of_sums, of_margins = np.mean(squares, axis=0)
    assert of_sums / of_margins >= 2.5


def test_non_negative_numbers_are_clamped_and_their_intervals_are_not() -> None:
    described = request([Levels("town")], [CountOf(), SumOf("height")], non_negative=True)
    records = people(4)
    table = columns(described, records, dataset_of(), PrivacyLoss(NANO // 100), SeededRandomness(1))
    counts, sums = (table.table()[name] for name in ("count", "sum(height)"))
    assert counts.raw is not None
    assert counts.raw.min() < 0
    assert (counts.value == np.maximum(counts.raw, 0)).all()
    assert ((counts.box.low < counts.raw) & (counts.raw < counts.box.high)).all()
    assert sums.value.min() < 0, "a sum of numbers that may be negative stays as it is"


def covered(column: Column, exact: Any) -> Any:
    return (column.box.low <= exact) & (exact <= column.box.high)


def test_counts_hold_as_often_as_their_exact_law() -> None:
    """20,000 cells at a rate where 95 % lies between two widths."""
    edges = tuple(i / 25 for i in range(2501))
    described = request([Levels("town"), Levels("sex"), Edges("age", edges)], [CountOf()])
    loss, empty = PrivacyLoss(NANO), people(0)
    column = columns(described, empty, dataset_of(), loss, SeededRandomness(5)).table()["count"]
    rate = Rate.of_counts(NANO)
    width = half_width(rate, 1, Fraction(1, 20))
    narrower, exact = (1 - 2 * tail(rate, 1, away) for away in (width, width + 1))
    assert narrower < 0.95 <= exact, "the interval is the shortest that holds often enough"
    assert float(np.mean(covered(column, 0))) == pytest.approx(exact, abs=0.005)


@pytest.mark.parametrize("times", [150, pytest.param(1250, marks=pytest.mark.slow)])
def test_made_numbers_hold_as_often_as_they_say(times: int) -> None:
    """Eight cells per run, so the longer test has 10,000 of each number."""
    derived = [MeanOf("age"), VarianceOf("age"), QuantilesOf("age", (0.5,))]
    described = request([Levels("town"), Levels("sex")], derived)
    dataset, random, loss = dataset_of(), SeededRandomness(5), PrivacyLoss(NANO // 5)
    groups = product(range(4), range(2))
    masks = [(RECORDS.codes["town"] == t) & (RECORDS.codes["sex"] == s) for t, s in groups]
    exact = truths(masks) | {
        "quantile(age, 0.5)": [np.sort(AGE[one])[(one.sum() + 1) // 2 - 1] for one in masks]
    }
    runs: dict[str, list[Any]] = {}
    for _ in range(times):
        for name, column in columns(described, RECORDS, dataset, loss, random).table().items():
            runs.setdefault(name, []).append(covered(column, np.array(exact[name])))
    assert len(runs) == 3
    for name, cells in runs.items():
        assert np.mean(cells) >= 0.945, name


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"by": [Levels("town"), Edges("town", (0.0, 1.0))]}, "in by once"),
        ({"aggregates": [CountOf(), CountOf()]}, "aggregate is listed once"),
        ({"shares": (Fraction(1, 2),)}, "add up to 1"),
        ({"aggregates": [CountOf(), SumOf("age")], "shares": (Fraction(1), None)}, "leave nothing"),
        ({"totals": MeasuredTotals((("sex",),), Fraction(1, 2))}, "some attributes of by"),
        ({"totals": MeasuredTotals((("town",),), Fraction(1, 2))}, "but not all"),
        ({"totals": MeasuredTotals(((), ()), Fraction(1, 2))}, "margin is listed once"),
    ],
)
def test_a_request_of_parts_that_clash_is_refused(options: dict[str, Any], rule: str) -> None:
    parts: dict[str, Any] = {"by": [Levels("town")], "aggregates": [CountOf()], **options}
    with pytest.raises(ValueError, match=rule):
        request(parts.pop("by"), parts.pop("aggregates"), **parts)


@pytest.mark.parametrize(
    "by",
    [
        Levels("nothing"),
        Chapters("town", {"x": ("z",)}),
        Edges("town", (0.0, 1.0)),
        Edges("age", (0.0, 101.0)),
    ],
)
def test_a_grouping_that_the_dataset_lacks_is_refused(by: Any) -> None:
    with pytest.raises(UnsupportedQuery):
        _ = TablePlan(request([by], [CountOf()]), dataset_of(), PrivacyLoss(NANO)).labels


def test_the_shares_of_a_plan_add_up_and_the_last_has_the_rest() -> None:
    totals = MeasuredTotals(((),), Fraction(1, 3))
    described = request([Levels("town")], ALL, totals=totals)
    for nano in (NANO, 10**7 + 1):
        plan = TablePlan(described, dataset_of(), PrivacyLoss(nano))
        assert sum((step.total() for step in plan.steps()), PrivacyLoss(0)) == PrivacyLoss(nano)
        count, mean_sum = plan.measurements[0].loss, plan.measurements[2].loss
        # The count is measured once and serves three columns: the count, the mean and the variance.
        assert count.epsilon_nano == int(Fraction(nano, 5) * Fraction(2, 3) * Fraction(11, 6))
        assert mean_sum.epsilon_nano == int(Fraction(nano, 5) * Fraction(2, 3) * Fraction(5, 6))
