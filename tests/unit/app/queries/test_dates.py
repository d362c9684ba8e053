"""Dates over HTTP: groups, ranges and trees of their bins; sums and means of dates are refused."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest

from app.contract.datasets import AttributeFacts, Facts
from app.dashboard.conditions import condition_of
from app.dashboard.forms import Form
from privypurse.levels import Column
from tests.support.service import Service

FIRST = date(2023, 11, 20)
DESCRIPTION: dict[str, Any] = {
    "name": "visits",
    "kind": "table",
    "neighbouring": "add_remove",
    "max_rows": 1000,
    "attributes": [
        {"name": "sex", "kind": "categorical", "values": ["f", "m"]},
        {
            "name": "seen",
            "kind": "date",
            "bounds": ["2023-11-20", "2024-03-31"],
            "bins": "month",
            "missing": "never",
        },
    ],
    "cap": {"epsilon": "100000000"},
}
DAYS = [FIRST + timedelta(i % 133) for i in range(400)]
ROWS = "seen,sex\n" + "".join(f"{day},{'fm'[i % 2]}\n" for i, day in enumerate(DAYS)) + "never,f\n"
MONTHS = ["2023-11", "2023-12", "2024-01", "2024-02", "2024-03", "never"]


@pytest.fixture
def visits(people: Service) -> Service:
    reply = people("olga", "POST", "/v1/datasets", json=DESCRIPTION)
    assert reply.status_code == 201, reply.text
    assert people.upload("olga", "visits", ROWS.encode()).status_code == 201
    people.grant("olga", "visits", "ana", "90000000")
    return people


def ask(shop: Service, **query: Any) -> Any:
    body = {"dataset": "visits", "epsilon": "1000000", "query": query}
    return shop("ana", "POST", "/v1/queries", json=body)


def test_dates_serve_wherever_bins_do(visits: Service) -> None:
    within = {"attribute": "seen", "from": "2023-12-24", "to": "2024-02-29"}
    table = ask(visits, kind="table", by=["seen"], where=within).json()["answer"]
    assert table["by"]["seen"] == MONTHS
    inside = [day for day in DAYS if date(2023, 12, 24) <= day < date(2024, 2, 29)]
    counts = [sum(str(day)[:7] == month for day in inside) for month in MONTHS]
    assert table["cells"]["count"]["value"] == counts
    assert table["question"].endswith("where seen is on or after 2023-12-24 and before 2024-02-29?")
    winter = {"attribute": "seen", "groups": {"winter": MONTHS[1:4]}}
    grouped = ask(visits, kind="table", by=[winter, "sex"]).json()["answer"]
    months = [str(day)[:7] for day in DAYS]
    assert sum(grouped["cells"]["count"]["value"]) == sum(one in MONTHS[1:4] for one in months)
    count = {"kind": "statistic", "statistic": "count"}
    never = ask(visits, **count, where={"attribute": "seen", "in": ["never"]}).json()["answer"]
    assert never["value"] == 1
    grown = {"attributes": ["seen"], "class_attribute": "sex", "max_depth": 1, "prune": False}
    root = ask(visits, kind="tree", **grown).json()["answer"]["trees"][0]
    assert list(root.get("branches", MONTHS)) == MONTHS
    utilities = [{"name": "count"}]
    top = {"kind": "top_k", "k": 1, "candidates": {"values_of": "seen"}, "utilities": utilities}
    assert ask(visits, **top).json()["answer"]["selected"][0] in MONTHS
    distances = ask(visits, kind="distance", target="seen").json()["answer"]
    assert distances["distances"]["seen"]["values"] == MONTHS


def test_sums_and_means_of_dates_are_refused(visits: Service) -> None:
    refused: list[dict[str, Any]] = [
        *({"kind": "statistic", "statistic": s, "attribute": "seen"} for s in ("sum", "mean")),
        {"kind": "statistic", "statistic": "median", "attribute": "seen"},
        {"kind": "table", "aggregates": [{"name": "mean", "attribute": "seen"}]},
        {"kind": "table", "aggregates": [{"name": "quantiles", "attribute": "seen"}]},
        {"kind": "table", "by": [{"attribute": "seen", "edges": [0, 5]}]},
        {"kind": "table", "where": {"attribute": "seen", "from": 3}},
        {"kind": "table", "where": {"attribute": "sex", "from": "2024-01-01"}},
        {"kind": "table", "where": {"attribute": "seen", "in": ["2024"]}},
    ]
    for query in refused:
        reply = ask(visits, **query)
        assert reply.status_code == 422, query
        assert reply.json()["type"].endswith("unsupported-query"), query
    reply = ask(visits, kind="table", where={"attribute": "seen", "from": "2024-02-30"})
    assert reply.json()["type"].endswith("invalid-request")


MALFORMED: dict[str, dict[str, Any]] = {
    "backwards": {"bounds": ["2024-01-01", "2023-12-31"]},
    "no dates": {"bounds": ["2024-1-1", "2024-12-31"]},
    "numbers": {"bounds": [0, 1]},
    "another width": {"bins": "week"},
    "no width": {"bins": None},
    "too long": {"bounds": ["1000-01-01", "2024-12-31"]},
    "too many bins": {"bounds": ["1824-01-02", "2023-12-31"], "bins": "day"},
    "missing is a date": {"missing": "2024-01-01"},
    "missing is a bin": {"missing": "2024-01"},
}


@pytest.mark.parametrize("change", MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_descriptions_are_refused(people: Service, change: dict[str, Any]) -> None:
    sex, seen = DESCRIPTION["attributes"]
    body = {**DESCRIPTION, "attributes": [sex, {**seen, **change}]}
    assert people("olga", "POST", "/v1/datasets", json=body).status_code == 422


def test_the_form_of_a_condition_takes_dates_as_they_are_typed() -> None:
    seen = AttributeFacts("seen", tuple(MONTHS), None, ("2023-11-20", "2024-03-31"))
    age = AttributeFacts("age", (), (0.0, 100.0))
    facts = Facts("visits", "table", "add_remove", (seen, age))
    typed = Form({"where.attribute": ["seen"], "where.from": [" 2024-01-05 "]})
    assert condition_of(facts, typed) == {"attribute": "seen", "from": "2024-01-05"}
    number = Form({"where.attribute": ["age"], "where.from": ["5"]})
    assert condition_of(facts, number) == {"attribute": "age", "from": 5}


def test_the_client_puts_its_own_dates_into_the_bins() -> None:
    column = Column.of(DESCRIPTION["attributes"][1])
    for value in (date(2024, 2, 29), "2024-02-29", "2024-02-29 11:00:00", "2024-02"):
        assert column.position(value, MONTHS) == 3
    assert column.position(None, MONTHS) == 5
    with pytest.raises(ValueError, match="not a level"):
        column.position("2025-01-01", MONTHS)
    quarters = Column("seen", dates="quarter")
    assert [quarters.text(f"2024-{month:02}-01") for month in (3, 4, 12)] == [
        *("2024-Q1", "2024-Q2", "2024-Q4"),
    ]
    assert Column("seen", dates="year").text("2024-12-31") == "2024"
