"""Light queries run on the event loop, and public facts decide which queries are light."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest
from fastapi import FastAPI

from app.queries.statistic.body import LIGHT_ROWS, StatisticQuery
from mechanisms.model.domains import (
    CategoricalAttribute,
    Dataset,
    GraphDomain,
    NeighbouringRelation,
    TableDomain,
)
from tests.support.patience import until
from tests.support.service import Service

ROWS = TableDomain((CategoricalAttribute("sex", ("F", "M")),), max_rows=100)
TABLE = Dataset("t", NeighbouringRelation.ADD_REMOVE, ROWS)
REGISTERED = {
    "name": "t",
    "kind": "table",
    "neighbouring": "add_remove",
    "max_rows": 100,
    "attributes": [{"name": "sex", "kind": "categorical", "values": ["F", "M"]}],
    "cap": {"epsilon": "10", "delta": "0"},
}
COUNT = {"kind": "statistic", "statistic": "count"}
WHERE = {**COUNT, "where": {"attribute": "sex", "in": ["F"]}}


def light(dataset: Dataset, **query: Any) -> bool:
    return StatisticQuery(**{**COUNT, **query}).is_light(dataset)


def test_light_are_counts_of_small_tables() -> None:
    many = replace(TABLE, domain=replace(ROWS, max_rows=LIGHT_ROWS))
    fixed = Dataset("t", NeighbouringRelation.REPLACE, replace(ROWS, rows=100, max_rows=None))
    graph = Dataset("g", NeighbouringRelation.EDGE, GraphDomain(10, 9))
    assert light(TABLE)
    assert light(fixed)
    assert not light(many)
    assert not light(TABLE, where=WHERE["where"])
    assert not light(graph, statistic="edges")


def test_the_first_may_compile_and_gets_a_thread(
    people: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = []
    compute = StatisticQuery.compute

    def noted(*args: Any) -> Any:
        threads.append(threading.current_thread().name)
        return compute(*args)

    monkeypatch.setattr(StatisticQuery, "compute", noted)
    assert people("olga", "POST", "/v1/datasets", json=REGISTERED).status_code == 201
    people.upload("olga", "t", b"sex\nF\nM\n")
    people.grant("olga", "t", "ana")
    for query in (COUNT, COUNT, WHERE, COUNT):
        body = {"dataset": "t", "epsilon": "0.1", "query": query}
        assert people("ana", "POST", "/v1/queries", json=body).status_code == 201
    assert [name.startswith("job") for name in threads] == [True, False, True, False]


def test_records_that_are_not_open_are_not_opened_by_a_query(
    people: Service, application: FastAPI
) -> None:
    """A version that the service has not opened here refuses its queries, free of charge."""
    datasets = application.state.services.datasets
    assert people("olga", "POST", "/v1/datasets", json=REGISTERED).status_code == 201
    people.upload("olga", "t", b"sex\nF\nM\n")
    people.grant("olga", "t", "ana")
    body = {"dataset": "t", "epsilon": "0.1", "query": COUNT}
    key = datasets.find("t").id, 1
    datasets.opened.forget(*key)
    reply = people("ana", "POST", "/v1/queries", json=body)
    assert (reply.status_code, reply.headers["Retry-After"]) == (503, "5")
    assert reply.json()["type"].endswith("busy")
    assert datasets.opened.get(*key) is None
    assert people("ana", "GET", "/v1/budgets").json()["items"][0]["spent"]["epsilon"] == "0"
    application.state.services.opener._repeated.wake()
    until(lambda: datasets.opened.get(*key) is not None)
    assert people("ana", "POST", "/v1/queries", json=body).status_code == 201
