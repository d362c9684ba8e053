"""Answers from the stored tables of a version are those from its rows, bit by bit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from accounting.privacy_loss import NANO, PrivacyLoss
from app.queries import QUERY, QueryContext
from mechanisms.kernels.level_counts import all_level_tables
from mechanisms.model.dates import DateAttribute
from mechanisms.model.domains import (
    CategoricalAttribute,
    Dataset,
    NeighbouringRelation,
    NumericAttribute,
    TableDomain,
)
from mechanisms.model.executor import Inline
from mechanisms.model.level_tables import split
from mechanisms.model.records import TableRecords
from tests.support.randomness import SeededRandomness

ROWS = 500
CLASS, FEW, MANY = ("no", "yes"), ("x", "y", "z"), tuple(map(str, range(300)))
DOMAIN = TableDomain(
    (
        CategoricalAttribute("many", MANY),
        CategoricalAttribute("class", CLASS),
        CategoricalAttribute("few", FEW),
        NumericAttribute("number", 0.0, 4.0, (0.0, 1.0, 4.0), missing="none"),
        NumericAttribute("wide", 0.0, 8.0, (0.0, 1.0, 3.0, 5.0, 8.0), missing="none"),
        DateAttribute("day", "2023-12-20", "2024-03-09", "month", missing="none"),
    ),
    class_attribute="class",
    max_rows=ROWS,
)
OTHER = {"attribute": "many", "in": ["3", "7", "299"]}
COUNT = {"kind": "statistic", "statistic": "count"}
#: Queries that stored tables of counts answer, so that no row is read.
FROM_TABLES: list[dict[str, Any]] = [
    {"kind": "table", "by": []},
    {"kind": "table", "by": ["few"]},
    {"kind": "table", "by": ["number", "few"], "totals": {"measured": [["few"]], "share": "0.5"}},
    {"kind": "table", "by": [{"attribute": "many", "groups": {"a": ["1", "5"], "b": ["9"]}}]},
    {"kind": "table", "by": ["few"], "where": {"any": [OTHER, {"not": OTHER}]}},
    {"kind": "table", "by": ["many"], "where": {"all": [OTHER, {"attribute": "few", "in": ["z"]}]}},
    {"kind": "table", "by": ["few"], "where": {"not": {"attribute": "number", "from": 1}}},
    {"kind": "table", "by": [{"attribute": "wide", "edges": [1, 3, 8]}, "few"]},
    {"kind": "table", "by": ["day"], "where": {"attribute": "day", "to": "2024-02-01"}},
    {**COUNT, "where": {"all": [OTHER, {"attribute": "number", "to": 1}]}},
    {**COUNT, "where": {"attribute": "day", "from": "2024-01-01", "to": "2024-03-01"}},
    {**COUNT, "where": OTHER},
    {**COUNT, "where": {"all": [OTHER, {"not": {"attribute": "class", "in": ["no"]}}]}},
    {
        "kind": "top_k",
        "k": 3,
        "candidates": {"values_of": "many"},
        "utilities": [{"name": "count"}],
    },
    *(
        {
            "kind": "selection",
            "candidates": {"attributes": ["few", "many", "number"]},
            "utilities": [{"name": name}],
        }
        for name in ("information_gain", "gini", "max")
    ),
    {"kind": "tree", "max_depth": 1},
]
#: Queries that must read the rows, with or without the stored tables of counts.
FROM_ROWS: list[dict[str, Any]] = [
    {"kind": "table", "by": ["few", "many", "class"]},
    {"kind": "table", "by": ["few"], "aggregates": [{"name": "sum", "attribute": "number"}]},
    {"kind": "table", "by": [{"attribute": "number", "edges": [0, 2, 4]}]},
    {"kind": "table", "by": [{"attribute": "wide", "edges": [0, 1, 5]}]},
    {"kind": "table", "by": ["few"], "where": {"attribute": "number", "from": 2}},
    {**COUNT, "where": {"all": [OTHER, {"attribute": "number", "to": 2}]}},
    {**COUNT, "where": {"attribute": "number", "to": 4}},
    {**COUNT, "where": {"attribute": "day", "from": "2024-01-02"}},
    {"kind": "tree", "max_depth": 3},
    {"kind": "clustering", "clusters": 2, "encoding": "one_hot", "starts": 3},
    {"kind": "distance", "target": "few", "attributes": ["few", "class", "number"]},
]


def datasets() -> Iterator[Dataset]:
    yield Dataset("d", NeighbouringRelation.ADD_REMOVE, DOMAIN)
    rows = replace(DOMAIN, rows=ROWS, max_rows=None)
    yield Dataset("d", NeighbouringRelation.REPLACE, rows)


def direct() -> TableRecords:
    rng = np.random.default_rng(5)
    numbers = rng.random(ROWS) * 4
    codes = {
        "many": rng.integers(0, 300, ROWS).astype(np.uint16),
        "class": rng.integers(0, 2, ROWS).astype(np.uint8),
        "few": rng.integers(0, 3, ROWS).astype(np.uint8),
        "number": (numbers >= 1).astype(np.uint8),
    }
    # In these rows every tenth number and date is missing, and one number equals its upper bound.
    numbers[-1], numbers[::10], codes["number"][::10] = 4, 2, 2
    days = rng.integers(0, 81, ROWS).astype(np.int32)
    codes["day"] = DOMAIN.attribute("day").codes[days].astype(np.uint8)  # type: ignore[union-attr]
    days[::10], codes["day"][::10] = 0, 4
    wide = rng.integers(0, 9, ROWS).astype(np.float64)
    codes["wide"] = np.minimum(np.searchsorted([1, 3, 5, 8], wide, "right"), 3).astype(np.uint8)
    wide[::7], codes["wide"][::7] = 4, 4
    values = {"number": numbers, "wide": wide}
    ordered = {name: np.sort(one) for name, one in values.items()}
    return TableRecords(codes, values, ordered, days={"day": days})


def stored() -> TableRecords:
    records = direct()
    return replace(records, tables=split(all_level_tables(records, DOMAIN, Inline()), DOMAIN))


def without_rows() -> TableRecords:
    """The tables of the same rows, and one row in place of all."""
    records = stored()
    columns = (records.codes, records.values, records.ordered, records.days)
    codes, values, ordered, days = ({name: a[:1] for name, a in one.items()} for one in columns)
    return replace(records, codes=codes, values=values, ordered=ordered, days=days)


def answer(body: dict[str, Any], dataset: Dataset, records: TableRecords) -> Any:
    query = QUERY.validate_json(json.dumps(body))
    loss = PrivacyLoss(NANO, query.delta_atto())
    query.price(dataset, loss)
    randomness = SeededRandomness(7)
    return query.compute(QueryContext(records, dataset, loss, randomness, Inline())).answer


@pytest.mark.parametrize("body", FROM_TABLES, ids=json.dumps)
def test_answers_from_tables_are_those_from_rows(body: dict[str, Any]) -> None:
    for dataset in datasets():
        expected = answer(body, dataset, direct())
        assert answer(body, dataset, stored()) == expected
        assert answer(body, dataset, without_rows()) == expected


@pytest.mark.parametrize("body", FROM_ROWS, ids=json.dumps)
def test_answers_that_need_rows_do_not_change_either(body: dict[str, Any]) -> None:
    for dataset in datasets():
        expected = answer(body, dataset, direct())
        assert answer(body, dataset, stored()) == expected


@pytest.mark.parametrize("body", [*FROM_TABLES[:14]], ids=json.dumps)
def test_the_work_follows_from_the_description_and_not_from_the_rows(body: dict[str, Any]) -> None:
    query, loss = QUERY.validate_json(json.dumps(body)), PrivacyLoss(NANO)
    works = []
    for rows in (1000, 10**8):
        domain = replace(DOMAIN, max_rows=rows)
        for level_cells in (domain.level_cells, 0):
            dataset = Dataset(
                "d",
                NeighbouringRelation.ADD_REMOVE,
                replace(domain, level_cells=level_cells),
            )
            works.append(query.work(dataset, loss))
    few, few_direct, many, many_direct = works
    assert few == many
    assert few_direct != many_direct
    assert max(amount.units for amount in few.values()) < 10**6
