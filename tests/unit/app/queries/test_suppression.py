"""Noisy counts below a dataset's ``minimum_count`` come back suppressed, of every kind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from accounting.privacy_loss import NANO, PrivacyLoss
from app.dashboard.templating import ENVIRONMENT
from app.queries import QUERY, QUERY_KINDS
from app.usecases.answer_files import FORMS
from mechanisms.model.domains import (
    CategoricalAttribute,
    Dataset,
    GraphDomain,
    NeighbouringRelation,
    NumericAttribute,
    TableDomain,
)
from mechanisms.model.records import GraphRecords, Records, TableRecords
from mechanisms.statistics import STATISTICS
from tests.support.contexts import context
from tests.support.randomness import SeededRandomness
from tests.support.service import Service

#: A privacy loss of ε = 1,000,000, at which the noise on a count is practically always 0.
LOUD = PrivacyLoss(10**6 * NANO)
DOMAIN = TableDomain(
    (
        CategoricalAttribute("town", ("a", "b", "c")),
        CategoricalAttribute("paid", ("no", "yes")),
        NumericAttribute("age", 0.0, 100.0, (0.0, 50.0, 100.0)),
    ),
    class_attribute="paid",
    max_rows=200,
)
#: 90 people live in town a, 8 in b and 2 in c. Those in a are paid, and the others are not.
TOWNS = np.repeat([0, 1, 2], [90, 8, 2]).astype(np.uint8)
AGES = np.full(100, 40.0)
TABLE = TableRecords(
    {"town": TOWNS, "paid": (TOWNS == 0).astype(np.uint8), "age": np.zeros(100, np.uint8)},
    {"age": AGES},
    {"age": AGES},
)
STAFF = Dataset("staff", NeighbouringRelation.ADD_REMOVE, DOMAIN, minimum_count=10)
NETWORK = Dataset("network", NeighbouringRelation.EDGE, GraphDomain(6, 5), minimum_count=10)
SURVEY = {
    "name": "other",
    "kind": "table",
    "neighbouring": "add_remove",
    "max_rows": 200,
    "attributes": [
        {"name": "town", "kind": "categorical", "values": ["a", "b"]},
        {"name": "paid", "kind": "categorical", "values": ["no", "yes"]},
    ],
    "cap": {"epsilon": "3000000"},
}
#: A star graph of six nodes. It has five edges, and the degrees of its nodes are 5 and 1.
STAR = GraphRecords(
    np.array([0, 5, 6, 7, 8, 9, 10]),
    np.array([1, 2, 3, 4, 5, 0, 0, 0, 0, 0], np.int32),
    {"degree": np.array([5, 1, 1, 1, 1, 1], np.int32)},
    {"edges": np.array([5])},
)


def answer(body: dict[str, Any], dataset: Dataset = STAFF, loss: PrivacyLoss = LOUD) -> Any:
    query = QUERY.validate_python(body, strict=False)
    records: Records = STAR if dataset.neighbouring is NeighbouringRelation.EDGE else TABLE
    query.price(dataset, loss)
    return query.compute(context(records, dataset, loss, SeededRandomness(1))).answer


def test_a_small_count_is_null_and_a_large_one_is_not() -> None:
    statistic = {"kind": "statistic", "statistic": "count"}
    assert answer(statistic)["value"] == 100
    small = answer({**statistic, "where": {"attribute": "town", "in": ["b"]}})
    assert (small["value"], small["low"], small["high"]) == (None, None, None)
    assert small["suppressed"] is True
    edges = answer({"kind": "statistic", "statistic": "edges"}, NETWORK)
    assert (edges["value"], edges["suppressed"]) == (None, True)
    free = replace(NETWORK, minimum_count=0)
    assert answer({"kind": "statistic", "statistic": "edges"}, free)["value"] == 5


def test_a_mean_of_a_small_group_goes_with_its_count() -> None:
    mean = {"kind": "statistic", "statistic": "mean", "attribute": "age"}
    small = answer({**mean, "where": {"attribute": "town", "in": ["c"]}})
    for number in (small, *small["parts"].values()):
        assert (number["value"], number["low"], number["high"]) == (None, None, None)
    assert answer(mean)["value"] == pytest.approx(40, abs=0.1)


def test_every_statistic_says_whether_it_is_a_count() -> None:
    counts = {name for name, one in STATISTICS.items() if one.is_count}
    assert counts == {"count", "edges", "triangles", "two_triangles", "stars"}


def test_tables_suppress_all_numbers_of_a_small_group() -> None:
    aggregates = [{"name": "count"}, {"name": "mean", "attribute": "age"}]
    table = answer({"kind": "table", "by": ["town"], "aggregates": aggregates})
    assert table["suppressed"] == [False, True, True]
    assert table["cells"]["count"]["value"] == [90, None, None]
    assert table["cells"]["mean(age)"]["low"][1:] == [None, None]
    (total,) = table["totals"]
    assert total["cells"]["count"]["value"] == [90]
    assert total["suppressed"] == [False]
    sums = answer(
        {"kind": "table", "by": ["town"], "aggregates": [{"name": "sum", "attribute": "age"}]}
    )
    assert sums["cells"]["sum(age)"]["value"][1:] == [None, None]
    assert sums["cells"]["count"]["value"] == [90, None, None]


def test_leaves_sizes_and_values_are_suppressed_too() -> None:
    tree = answer({"kind": "tree", "attributes": ["town"], "prune": False})["trees"][0]
    leaves = list(tree["branches"].values()) if "branches" in tree else [tree]
    counts = [count for leaf in leaves for count in leaf["counts"].values()]
    assert {count["value"] for count in counts} <= {None, 90}
    assert None in {count["value"] for count in counts}
    sizes = answer({"kind": "clustering", "clusters": 3, "encoding": "one_hot"})["sizes"]
    assert sizes["suppressed"] == [value is None for value in sizes["value"]]
    assert all(value is None or value >= 10 for value in sizes["value"])
    assert True in sizes["suppressed"]
    top = {"kind": "top_k", "k": 2, "selector": "laplace", "utilities": [{"name": "count"}]}
    values = answer({**top, "candidates": {"values_of": "town"}})["values"]
    assert values["value"] == [90, None]
    assert values["suppressed"] == [False, True]
    degrees = {**top, "utilities": [{"name": "degree"}], "sensitivity": "global"}
    assert answer(degrees, NETWORK)["values"]["value"] == [None, None]


def test_the_owner_registers_the_minimum_and_everybody_reads_it(people: Service) -> None:
    body = {**SURVEY, "name": "survey", "minimum_count": 101}
    assert people("olga", "POST", "/v1/datasets", json=body).status_code == 201
    rows = "town,paid\n" + "a,no\n" * 100
    assert people.upload("olga", "survey", rows.encode()).status_code == 201
    people.grant("olga", "survey", "ana", "2000000")
    assert people("ana", "GET", "/v1/datasets/survey").json()["minimum_count"] == 101
    query = {"kind": "statistic", "statistic": "count"}
    sent = {"dataset": "survey", "epsilon": "1000000", "query": query}
    reply = people("ana", "POST", "/v1/queries", json=sent).json()
    assert reply["answer"]["suppressed"] is True
    assert reply["answer"]["value"] is None
    assert reply["charge"]["epsilon"] == "1000000"
    refused = people("olga", "POST", "/v1/datasets", json={**SURVEY, "minimum_count": 0})
    assert refused.status_code == 422


BODIES: list[dict[str, Any]] = [
    {"kind": "statistic", "statistic": "count", "where": {"attribute": "town", "in": ["b"]}},
    {
        "kind": "statistic",
        "statistic": "mean",
        "attribute": "age",
        "where": {"attribute": "town", "in": ["c"]},
    },
    {"kind": "table", "by": ["town", "paid"]},
    {"kind": "table", "by": [], "where": {"attribute": "town", "in": ["c"]}},
    {"kind": "tree", "attributes": ["town"]},
    {"kind": "clustering", "clusters": 3, "encoding": "one_hot"},
    {
        "kind": "top_k",
        "k": 2,
        "selector": "laplace",
        "utilities": [{"name": "count"}],
        "candidates": {"values_of": "town"},
    },
]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body["kind"])
def test_pages_and_files_name_suppressed_numbers(body: dict[str, Any]) -> None:
    result, kind = answer(body), QUERY_KINDS[body["kind"]]
    page = ENVIRONMENT.get_template(f"{kind.name}/answer.html")
    text = page.render(answer=result, drawing=kind.draw(result))
    assert "suppressed" in text
    assert "None" not in text
    charge = {"epsilon": "1", "delta": "0", "rho": None}
    reply = {"query": {"kind": kind.name}, "answer": result, "charge": charge}
    assert b"suppressed" in FORMS["csv"].write(reply)
    for form in FORMS.values():
        assert form.write(reply)
