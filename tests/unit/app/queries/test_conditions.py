"""Every statistic of the rows that meet a condition, against other libraries at a large loss."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping
from functools import reduce
from operator import and_, or_
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from accounting.privacy_loss import PrivacyLoss
from app.queries import QUERY
from app.queries.parts.query import QueryContext
from app.queries.statistic.body import StatisticQuery
from mechanisms.model.domains import (
    CategoricalAttribute,
    Dataset,
    NeighbouringRelation,
    NumericAttribute,
    TableDomain,
)
from mechanisms.model.records import TableRecords
from mechanisms.statistics.quantile import Quantile
from tests.support.contexts import context

ROWS = 3000
TOWNS = ("a", "b", "c", "?")
CONDITIONS: list[dict[str, Any]] = [
    {"attribute": "town", "in": ["a", "?"]},
    {"attribute": "age", "from": 20, "to": 60},
    {"attribute": "age", "in": [18, 19, 33, 34]},
    {"not": {"attribute": "town", "in": ["a"]}},
    {"all": [{"attribute": "age", "from": 40}, {"attribute": "town", "in": ["b", "c"]}]},
    {"any": [{"attribute": "age", "to": 25}, {"not": {"attribute": "town", "in": ["c"]}}]},
]
#: A condition of a query that no row of the table meets.
NO_ROW: dict[str, Any] = {"attribute": "age", "in": [0.5]}
STATISTICS: list[dict[str, Any]] = [
    {"statistic": "count"},
    {"statistic": "sum", "attribute": "pay"},
    {"statistic": "mean", "attribute": "pay"},
    {"statistic": "median", "attribute": "pay"},
    {"statistic": "quantile", "attribute": "pay", "quantile": 0.1},
    {"statistic": "median", "attribute": "pay", "mechanism": "smooth_sensitivity"},
    {
        "statistic": "quantile",
        "attribute": "pay",
        "quantile": 0.9,
        "mechanism": "smooth_sensitivity",
    },
]

each_relation = pytest.mark.parametrize(
    "relation", [NeighbouringRelation.ADD_REMOVE, NeighbouringRelation.REPLACE]
)


def dataset_of(relation: NeighbouringRelation) -> Dataset:
    attributes = (
        CategoricalAttribute("town", TOWNS),
        NumericAttribute("age", 0.0, 100.0, (0.0, 50.0, 100.0)),
        NumericAttribute("pay", 9.5, 1000.5, (9.5, 1000.5)),
    )
    if relation is NeighbouringRelation.REPLACE:
        return Dataset("staff", relation, TableDomain(attributes, rows=ROWS))
    return Dataset("staff", relation, TableDomain(attributes, max_rows=ROWS))


def staff() -> dict[str, Any]:
    rng = np.random.default_rng(5)
    age = rng.integers(18, 90, ROWS).astype(float)
    return {"town": rng.integers(0, 4, ROWS), "age": age, "pay": np.round(10 + age * 7.3, 1)}


def records() -> TableRecords:
    columns = staff()
    values = {name: columns[name] for name in ("age", "pay")}
    codes = {"town": columns["town"].astype(np.uint8)}
    codes |= {name: np.zeros(ROWS, np.uint8) for name in values}
    return TableRecords(codes, values, {name: np.sort(one) for name, one in values.items()})


def in_arrow(where: Mapping[str, Any], attribute: str) -> list[float]:
    columns = staff()
    frame = pa.table({**columns, "town": [TOWNS[code] for code in columns["town"]]})

    def met(part: Mapping[str, Any]) -> Any:
        if "not" in part:
            return pc.invert(met(part["not"]))
        for name, join in (("all", pc.and_), ("any", pc.or_)):
            if name in part:
                return reduce(join, map(met, part[name]))
        column = frame[part["attribute"]]
        if "in" in part:
            return pc.is_in(column, value_set=pa.array(part["in"], column.type))
        above = pc.greater_equal(column, float(part.get("from", -1e9)))
        return pc.and_(above, pc.less(column, float(part.get("to", 1e9))))

    return frame.filter(met(where))[attribute].to_pylist()


def in_pandas(where: Mapping[str, Any], attribute: str) -> list[float]:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    columns = staff()
    frame = pandas.DataFrame({**columns, "town": [TOWNS[code] for code in columns["town"]]})

    def met(part: Mapping[str, Any]) -> Any:
        if "not" in part:
            return ~met(part["not"])
        for name, join in (("all", and_), ("any", or_)):
            if name in part:
                return reduce(join, map(met, part[name]))
        column = frame[part["attribute"]]
        if "in" in part:
            return column.isin(part["in"])
        return (column >= part.get("from", -1e9)) & (column < part.get("to", 1e9))

    return frame[met(where)][attribute].tolist()


def expected(statistic: Mapping[str, Any], numbers: list[float]) -> float:
    match statistic["statistic"]:
        case "count":
            return len(numbers)
        case "sum":
            return float(np.sum(numbers))
        case "mean":
            return float(np.mean(numbers))
    share = statistic.get("quantile", 0.5)
    return float(np.quantile(numbers, share, method="inverted_cdf"))


def answer(statistic: Mapping[str, Any], relation: NeighbouringRelation) -> dict[str, Any]:
    smooth = statistic.get("mechanism") == "smooth_sensitivity"
    body = {"kind": "statistic", **statistic, "delta": "0.001" if smooth else "0"}
    query = QUERY.validate_json(json.dumps(body))
    loss = PrivacyLoss.parse("1000000", body["delta"])
    dataset = dataset_of(relation)
    assert query.price(dataset, loss).total() == loss
    plain = context(records(), dataset)
    within = QueryContext(plain.records, dataset, loss, plain.randomness, plain.executor)
    return dict(query.compute(within).answer)


@pytest.mark.parametrize(
    "relation", [NeighbouringRelation.ADD_REMOVE, NeighbouringRelation.REPLACE]
)
@pytest.mark.parametrize("read", [in_arrow, in_pandas])
@pytest.mark.long
def test_statistics_where_are_those_of_other_libraries(
    read: Any, relation: NeighbouringRelation
) -> None:
    for where in CONDITIONS:
        numbers = read(where, "pay")
        assert 50 < len(numbers) < ROWS
        for statistic in STATISTICS:
            value = answer({**statistic, "where": where}, relation)["value"]
            # A quantile is selected from 2¹⁶ cells. With smooth sensitivity it has noise of about
            # the gap between two neighbouring numbers, divided by ε.
            away = 0.03 if "mechanism" not in statistic else 0.1
            assert value == pytest.approx(expected(statistic, numbers), abs=away), (
                statistic,
                where,
            )


@each_relation
def test_sums_and_means_of_no_row_are_public(relation: NeighbouringRelation) -> None:
    for name, value in (("sum", 0), ("mean", 505)):
        empty = answer({"statistic": name, "attribute": "pay", "where": NO_ROW}, relation)
        assert empty["value"] == pytest.approx(value, abs=0.03)


def calls_of(statistic: Mapping[str, Any]) -> Counter[tuple[str, str]]:
    """The calls while a statistic is measured, and the sizes of the arrays of their callers."""
    query = QUERY.validate_json(json.dumps({"kind": "statistic", **statistic}))
    assert isinstance(query, StatisticQuery)
    dataset = dataset_of(NeighbouringRelation.ADD_REMOVE)
    within, calls = context(records(), dataset), Counter[tuple[str, str]]()

    def note(frame: Any, event: str, function: Any) -> None:
        if event in ("call", "c_call"):
            calls[event, getattr(function, "__qualname__", frame.f_code.co_qualname)] += 1
            sizes = [v.size for v in frame.f_locals.values() if isinstance(v, np.ndarray)]
            calls["sizes", f"{frame.f_code.co_qualname} {sizes}"] += 1

    for part in query._statistic.parts(dataset):
        plan = part.plan(dataset, 10**9)
        cells = part.cells(dataset) if isinstance(part, Quantile) else np.empty(0)
        sys.setprofile(note)
        try:
            if isinstance(part, Quantile):
                part.rank_scores(within, cells)
            else:
                part.measure(within, plan)
        finally:
            sys.setprofile(None)
    return calls


@pytest.mark.parametrize("statistic", STATISTICS[:5], ids=lambda one: str(one["statistic"]))
def test_the_work_does_not_follow_the_rows_that_meet_the_condition(
    statistic: Mapping[str, Any],
) -> None:
    """Equal calls, of Python and of compiled functions, with equal sizes of arrays."""
    calls = [
        calls_of({**statistic, "where": {"attribute": "age", **ends}})
        for ends in ({"from": 0, "to": 0.001}, {"from": 0, "to": 99.9})
    ]
    assert calls[0] == calls[1]
    assert len(calls[0]) > 5
