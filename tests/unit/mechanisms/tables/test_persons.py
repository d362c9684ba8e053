"""Persons in tables: once per cell, measured in totals or absent, suppressed with small counts."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from accounting.privacy_loss import NANO, PrivacyLoss
from mechanisms.model.domains import Dataset
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.open_domain import OpenAttribute
from mechanisms.model.records import TableRecords
from mechanisms.model.table_candidates import table_domain
from mechanisms.tables.aggregates import CountOf, QuantilesOf, SumOf
from mechanisms.tables.grouping import Levels
from mechanisms.tables.open_groups import OpenPlan
from mechanisms.tables.persons import PersonsOf
from mechanisms.tables.plan import TablePlan
from mechanisms.tables.request import MeasuredTotals
from tests.unit.mechanisms.tables.worlds import (
    ATTRIBUTES,
    LOUD,
    columns,
    dataset_of,
    people,
    request,
)

ROWS, MOST = 3000, 4


def visits() -> tuple[Dataset, TableRecords]:
    """Rows of persons with up to four of them."""
    dataset = dataset_of(rows=5000)
    domain = replace(dataset.domain, person="id")  # type: ignore[type-var]
    persons = np.repeat(np.arange(ROWS // 2), np.random.default_rng(0).integers(1, 5, ROWS // 2))
    records = replace(people(ROWS), persons=persons[:ROWS].astype(np.int32))
    return replace(dataset, domain=domain, records_per_person=MOST), records


BY = [Levels("town"), Levels("sex")]


def persons_by(records: TableRecords, *names: str) -> list[int]:
    assert records.persons is not None
    sizes = {"town": 4, "sex": 2}
    cells = np.ndindex(*(sizes[name] for name in names))
    masks = (
        np.all([np.ones(ROWS, np.bool_), *map(_is, names, cell, [records] * 2)], axis=0)
        for cell in cells
    )
    return [len(np.unique(records.persons[mask])) for mask in masks]


def _is(name: str, code: int, records: TableRecords) -> np.ndarray:
    return records.codes[name] == code


def test_totals_of_persons_are_measured_or_absent() -> None:
    dataset, records = visits()
    described = request(BY, [PersonsOf(), CountOf()])
    table = columns(described, records, dataset)
    assert table.table()["persons"].value.tolist() == persons_by(records, "town", "sex")
    assert {margin: set(numbers) for margin, _, numbers in table.totals()} == {
        margin: {"count"} for margin in [(), ("town",), ("sex",)]
    }
    assert list(columns(request(BY, [PersonsOf()]), records, dataset).totals()) == []


@pytest.mark.parametrize("consistent", [True, False])
def test_measured_totals_count_every_person_once(consistent: bool) -> None:
    dataset, records = visits()
    totals = MeasuredTotals((("sex",), ()), Fraction(1, 2))
    described = request(BY, [PersonsOf(), CountOf()], totals=totals, consistent=consistent)
    table = columns(described, records, dataset)
    margins = {margin: numbers for margin, _, numbers in table.totals()}
    assert margins["sex",]["persons"].value.tolist() == persons_by(records, "sex")
    assert margins[()]["persons"].value.tolist() == persons_by(records)
    assert "persons" not in margins["town",]
    assert sum(table.table()["persons"].value) > margins[()]["persons"].value[0]
    for one in (table.table(), margins["sex",], margins[()]):
        assert one["persons"].raw is None
        assert (one["count"].raw is not None) == consistent


def test_a_small_number_of_persons_is_suppressed_with_its_cell() -> None:
    dataset, records = visits()
    here = records.codes["town"] == 0
    # Only two persons have rows in the first town, so its number of persons must be suppressed.
    few = np.where(here, np.int32(0) + (np.arange(ROWS) % 2), records.persons).astype(np.int32)
    order = np.argsort(few, kind="stable")
    codes = {name: column[order] for name, column in records.codes.items()}
    few_persons = TableRecords(codes, {}, persons=few[order])
    described = request([Levels("town")], [PersonsOf(), CountOf()])
    table = columns(described, few_persons, replace(dataset, minimum_count=5)).table()
    assert table["count"].value[0] >= 5
    for name in ("persons", "count"):
        assert table[name].suppressed is not None
        assert table[name].suppressed.tolist() == [True, False, False, False]


def test_a_table_without_persons_counts_none() -> None:
    with pytest.raises(UnsupportedQuery):
        TablePlan(request(BY, [PersonsOf()]), dataset_of(), LOUD).measurements  # noqa: B018
    dataset, _ = visits()
    with pytest.raises(TypeError):
        columns(request(BY, [PersonsOf()]), people(ROWS), dataset)


def test_open_groups_price_sums_over_rows_alone() -> None:
    dataset, _ = visits()
    domain = table_domain(dataset)
    code = replace(dataset, domain=replace(domain, attributes=(OpenAttribute("code"), *ATTRIBUTES)))
    loss = PrivacyLoss(NANO, 10**12)
    assert OpenPlan.of(request([Levels("code")], [CountOf(), SumOf("age")]), code, loss).steps()
    for aggregate in (PersonsOf(), QuantilesOf("age", (0.5,))):
        for aggregates in ([aggregate], [CountOf(), aggregate]):
            with pytest.raises(UnsupportedQuery, match="sums over their rows"):
                OpenPlan.of(request([Levels("code")], aggregates), code, loss)
