"""Work of a small public cost runs on the event loop; its first run, and all other, in a thread."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import Any

import pytest
from fastapi import FastAPI

from app.engine import attempts
from app.engine.attempts import Attempt
from app.queries.statistic.body import StatisticQuery
from tests.support.patience import until
from tests.support.service import Service

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


def test_the_first_may_compile_and_gets_a_thread(
    people: Service, application: FastAPI, monkeypatch: pytest.MonkeyPatch
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
    # With this limit every query of the test is short enough for the event loop, on any machine.
    monkeypatch.setattr(attempts, "INLINE", 60.0)
    for query in (COUNT, COUNT, WHERE, COUNT, WHERE):
        body = {"dataset": "t", "epsilon": "0.1", "query": query}
        assert people("ana", "POST", "/v1/queries", json=body).status_code == 201
    assert [name.startswith("job") for name in threads] == [True, False, True, False, False]
    # A caller that does not wait for the deadline must get its reply while the query runs. So the
    # query runs in a thread, because on the event loop it would delay the reply.
    headers = {"Prefer": "respond-async"}
    assert people("ana", "POST", "/v1/queries", json=body, headers=headers).status_code == 202
    until(lambda: len(threads) == 6)
    assert threads[-1].startswith("job")
    # A caller that waits for one second also gets its reply while the query runs in a thread, if
    # the ledger takes this second to charge the query.
    ledger = application.state.services.answering._ledger
    reserve = ledger.reserve

    async def slow(request: Any) -> Any:
        outcome = await reserve(request)
        await asyncio.sleep(1.0)
        return outcome

    headers = {"Prefer": "wait=1"}
    with monkeypatch.context() as patched:
        patched.setattr(ledger, "reserve", slow)
        assert people("ana", "POST", "/v1/queries", json=body, headers=headers).status_code == 202
    until(lambda: len(threads) == 7)
    assert threads[-1].startswith("job")
    # A query whose cost exceeds the limit for the event loop always runs in a thread.
    monkeypatch.setattr(attempts, "INLINE", 0.0)
    assert people("ana", "POST", "/v1/queries", json=body).status_code == 201
    assert threads[-1].startswith("job")


def test_a_query_that_has_ended_keeps_no_records_in_memory(people: Service) -> None:
    """Without a cycle, its records are unmapped as soon as their version is withdrawn."""
    assert people("olga", "POST", "/v1/datasets", json=REGISTERED).status_code == 201
    people.upload("olga", "t", b"sex\nF\nM\n")
    people.grant("olga", "t", "ana")
    body = {"dataset": "t", "epsilon": "0.1", "query": COUNT}
    gc.collect()
    gc.disable()
    try:
        # The first query runs in a thread, because it may compile kernels. The others run on the
        # event loop. So the test covers both ways.
        for _ in range(5):
            assert people("ana", "POST", "/v1/queries", json=body).status_code == 201
        remaining = [one for one in gc.get_objects() if type(one) is Attempt]
        # One attempt may remain, because the thread that runs jobs refers to its latest one until
        # it gets the next.
        assert len(remaining) <= 1
    finally:
        gc.enable()


def test_records_that_are_not_open_are_not_opened_by_a_query(
    people: Service, application: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A version that the service has not opened here refuses its queries, free of charge."""
    services = application.state.services
    versions, opener = services.versions, services.opener
    assert people("olga", "POST", "/v1/datasets", json=REGISTERED).status_code == 201
    people.upload("olga", "t", b"sex\nF\nM\n")
    people.grant("olga", "t", "ana")
    body = {"dataset": "t", "epsilon": "0.1", "query": COUNT}
    key = services.datasets.find("t").id, 1
    with monkeypatch.context() as closed:
        # The service looks for versions to open several times a second. Without this patch it would
        # open the version again before the query.
        closed.setattr(opener, "_try", lambda *_, **__: None)
        versions.opened.forget(*key)
        reply = people("ana", "POST", "/v1/queries", json=body)
        assert (reply.status_code, reply.headers["Retry-After"]) == (503, "5")
        assert reply.json()["type"].endswith("busy")
        assert versions.opened.get(*key) is None
        assert people("ana", "GET", "/v1/budgets").json()["items"][0]["spent"]["epsilon"] == "0"
    opener._repeated.wake()
    until(lambda: versions.opened.get(*key) is not None)
    assert people("ana", "POST", "/v1/queries", json=body).status_code == 201
