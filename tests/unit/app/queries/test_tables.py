"""Tables over HTTP: one exact charge for all cells, free refusals, answers without noise."""

from __future__ import annotations

from decimal import Decimal
from itertools import product
from typing import Any

import pytest

from app.config.settings import Settings
from tests.support.service import Service
from tests.unit.app.queries.test_statistics import ROWS, TABLE

BY_TOWN: dict[str, Any] = {
    "kind": "table",
    "by": ["town", {"attribute": "age", "edges": [0, 10, 60]}],
    "aggregates": [
        {"name": "count", "share": 0.5},
        {"name": "mean", "attribute": "pay"},
        {"name": "quantiles", "attribute": "pay", "quantiles": [0.5], "edges": [0, 300, 600]},
    ],
    "where": {"attribute": "age", "from": 5},
}


@pytest.fixture
def settings(settings: Settings, request: pytest.FixtureRequest) -> Settings:
    return settings.model_copy(update=getattr(request, "param", {}))


@pytest.fixture
def staff(people: Service) -> Service:
    assert people("olga", "POST", "/v1/datasets", json=TABLE).status_code == 201
    assert people.upload("olga", "staff", ROWS.encode()).status_code == 201
    people.grant("olga", "staff", "ana", "10000000")
    return people


def ask(shop: Service, query: dict[str, Any], epsilon: str = "1", path: str = "queries") -> Any:
    body = {"dataset": "staff", "epsilon": epsilon, "query": query}
    return shop("ana", "POST", f"/v1/{path}", json=body)


def test_all_cells_together_cost_the_charge_and_the_quote_says_it(staff: Service) -> None:
    for epsilon in ("0.000007", "0.333333333", "1"):
        check_charge(staff, epsilon)


def check_charge(staff: Service, epsilon: str) -> None:
    quote = ask(staff, BY_TOWN, epsilon, "quotes").json()
    reply = ask(staff, BY_TOWN, epsilon)
    assert reply.status_code == 201, reply.text
    body = reply.json()
    assert quote["steps"] == body["steps"]
    total = sum(Decimal(step["epsilon"]) for step in body["steps"])
    assert total == Decimal(body["charge"]["epsilon"]) == Decimal(epsilon)
    assert quote["accuracy"]["cells"] == 9
    assert {name: len(labels) for name, labels in body["answer"]["by"].items()} == {
        "town": 3,
        "age": 3,
    }


def test_an_answer_without_noise_is_that_of_the_rows(staff: Service) -> None:
    answer = ask(staff, BY_TOWN, "1000000").json()["answer"]
    rows = [("ab?"[i % 3], i % 100 if i else None, 10 * (i % 100)) for i in range(400)]
    assert answer["by"] == {"town": ["a", "b", "?"], "age": ["[0,10)", "[10,60]", "none"]}
    cells = [
        [pay for town, age, pay in rows if town == t and age is not None and low <= age <= high]
        for t in "ab?"
        for low, high in ((5, 9), (10, 60), (101, 102))
    ]
    assert answer["cells"]["count"]["value"] == [len(cell) for cell in cells]
    for mean, cell in zip(answer["cells"]["mean(pay)"]["value"], cells, strict=True):
        assert not cell or mean == pytest.approx(sum(cell) / len(cell), abs=0.1)
    grand = next(one for one in answer["totals"] if one["by"] == [])
    assert grand["cells"]["count"]["value"] == [sum(map(len, cells))]
    assert answer["confidence"] == 0.95
    assert answer["noise"][0]["law"] == "discrete_laplace"


MALFORMED: list[tuple[dict[str, Any], str]] = [
    ({"by": ["town"] * 7}, "by"),
    ({"by": [{"attribute": "age", "edges": [3, 3]}]}, "by"),
    ({"by": [{"attribute": "town", "groups": {"x": ["a"], "y": ["a"]}}]}, "by"),
    ({"aggregates": [{"name": "sum"}]}, "aggregates"),
    ({"aggregates": [{"name": "count", "attribute": "age"}]}, "aggregates"),
    ({"aggregates": [{"name": "sum", "attribute": "age", "edges": [0, 1]}]}, "aggregates"),
    ({"aggregates": [{"name": "persons", "attribute": "age"}]}, "aggregates"),
    ({"aggregates": [{"name": "people"}]}, "aggregates"),
    ({"where": {"attribute": "town"}}, "where"),
    ({"totals": {"measured": [], "share": "0.5"}}, "totals"),
    ({"totals": {"measured": [[]], "share": "1"}}, "totals"),
    ({"by": ["town", "town"]}, ""),
]


def test_a_malformed_body_is_refused_where_it_is(staff: Service) -> None:
    for query, loc in MALFORMED:
        reply = ask(staff, {"kind": "table", **query})
        assert (reply.status_code, reply.json()["type"]) == (422, "/problems/invalid-request")
        places = [error["loc"] for error in reply.json()["errors"]]
        assert any(loc in place if loc else place[-1] == "table" for place in places), places


LACKING: list[dict[str, Any]] = [
    {"by": ["nothing"]},
    {"by": [{"attribute": "age", "edges": [0, 101]}]},
    {"by": [{"attribute": "town", "groups": {"x": ["z"]}}]},
    {"by": ["town"], "aggregates": [{"name": "mean", "attribute": "town"}]},
    {"by": ["town"], "where": {"attribute": "town", "in": ["z"]}},
    {"by": ["town"], "aggregates": [{"name": "persons"}]},
]


def test_what_the_dataset_lacks_is_refused_free(staff: Service) -> None:
    for query, path in product(LACKING, ("queries", "quotes")):
        reply = ask(staff, {"kind": "table", **query}, path=path)
        assert (reply.status_code, reply.json()["type"]) == (422, "/problems/unsupported-query")
        assert reply.json()["supported"]
    (account,) = staff("ana", "GET", "/v1/budgets").json()["items"]
    assert account["spent"]["epsilon"] == "0"


@pytest.mark.parametrize("settings", [{"table_cells": 8}], indirect=True)
def test_too_many_cells_are_refused_free_and_at_the_quote(staff: Service) -> None:
    for path in ("queries", "quotes"):
        reply = ask(staff, BY_TOWN, path=path)
        assert (reply.status_code, reply.json()["type"]) == (422, "/problems/too-costly")
        assert (reply.json()["cost"], reply.json()["limit"]) == ("18 cells", "8 cells")
        assert reply.json()["lower"] == ["by", "aggregates"]
    assert ask(staff, {"kind": "table", "by": ["town"]}).status_code == 201


def test_a_quote_finds_the_loss_that_reaches_an_error(staff: Service) -> None:
    query = {"kind": "table", "by": ["town"]}
    body = {"dataset": "staff", "target": {"error": 20}, "query": query}
    quote = staff("ana", "POST", "/v1/quotes", json=body).json()
    assert quote["accuracy"]["parts"][0]["error"] == 20
    epsilon = Decimal(quote["charge"]["epsilon"]) - Decimal("0.000000001")
    less = ask(staff, query, str(epsilon), "quotes").json()
    assert less["accuracy"]["parts"][0]["error"] > 20
