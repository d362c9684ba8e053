"""The one clock, waiting, cancelling and fencing, on a whole service."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from itertools import count
from typing import Any

import httpx
import pytest
from sqlalchemy import update

from app.config.settings import Settings
from app.engine import attempts, schedule
from app.engine.schedule import LONG, Ticket
from app.queries.selection.body import Selection
from app.usecases.services import Services
from storage.database.tables import query
from storage.errors import Busy
from tests.support.patience import PATIENCE, WAIT, until
from tests.support.service import Service

INTERVAL = 0.4
QUERY = {"kind": "selection", "utilities": [{"name": "degree"}]}
BODY = {"dataset": "triangle", "epsilon": "0.1", "query": QUERY}


@pytest.fixture
def settings(settings: Settings, request: pytest.FixtureRequest) -> Settings:
    interval = getattr(request, "param", INTERVAL)
    return settings.model_copy(update={"release_interval": interval, "workers": 1})


@pytest.fixture
def shop(people: Service) -> Service:
    people.dataset("olga")
    people.grant("olga", "triangle", "ana", "1")
    return people


def ask(service: Service, prefer: str | None = None, key: str | None = None) -> httpx.Response:
    headers = {"Prefer": prefer} if prefer else {}
    if key:
        headers["Idempotency-Key"] = key
    return service("ana", "POST", "/v1/queries", json=BODY, headers=headers)


def services(service: Service) -> Services:
    state: Services = service.client.app.state.services  # type: ignore[attr-defined]
    return state


def spent(service: Service) -> str:
    (account,) = service("ana", "GET", "/v1/budgets").json()["items"]
    return str(account["spent"]["epsilon"])


def status(service: Service, path: str, **sent: Any) -> str:
    return str(service("ana", "GET", path, **sent).json()["status"])


def test_an_answer_leaves_at_its_deadline(shop: Service) -> None:
    started = time.monotonic()
    reply = ask(shop)
    took = time.monotonic() - started
    assert reply.status_code == 201
    assert released_after(shop) >= 1
    assert took >= released_after(shop) * INTERVAL


def test_work_that_misses_its_deadline_leaves_later_and_is_counted(
    shop: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A miss changes nothing but the instant: neither body nor status."""
    in_time = ask(shop).json()
    go_on = paused(monkeypatch)
    # The query must run in a thread. On the event loop it would block the count of missed
    # deadlines.
    monkeypatch.setattr(attempts, "INLINE", -1.0)
    before = services(shop).answering._attempts.misses
    with ThreadPoolExecutor(1) as pool:
        reply = pool.submit(ask, shop)
        until(lambda: services(shop).answering._attempts.misses > before)
        go_on.set()
        assert reply.result().status_code == 201
    assert released_after(shop) >= 2
    assert reply.result().json().keys() == in_time.keys()
    exposition = services(shop).metrics.exposition().decode()
    assert "deadlines_missed 0.0" not in exposition
    assert "queries_late 0.0" not in exposition


def test_work_that_misses_every_deadline_leaves_the_query_running(
    shop: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No status tells of the time of the work: the key runs the query again later."""
    go_on = paused(monkeypatch)
    monkeypatch.setattr(attempts, "INLINE", -1.0)
    monkeypatch.setattr(attempts, "MOST_MISSES", 1)
    reply = ask(shop, key="k")
    go_on.set()
    assert (reply.status_code, reply.json()["type"]) == (409, "/problems/still-running")
    assert spent(shop) == "0.1"


@pytest.mark.usefixtures("heavy")
def test_a_wait_that_ends_before_the_deadline_gets_202(shop: Service) -> None:
    gate = hold(shop)
    reply = ask(shop, "wait=0")
    assert reply.status_code == 202
    gate.set()
    path = reply.headers["Location"]
    assert status(shop, path, headers=WAIT) == "answered"


@pytest.mark.usefixtures("heavy")
def test_a_query_that_waits_for_a_slot_can_be_cancelled(shop: Service) -> None:
    gate = hold(shop)
    path = ask(shop, "respond-async", "k").headers["Location"]
    assert spent(shop) == "0.1"
    assert shop("ana", "DELETE", path).status_code == 204
    gate.set()
    assert spent(shop) == "0"
    assert status(shop, path, headers=WAIT) == "cancelled"
    charge = shop("ana", "GET", path).json()["charge"]
    assert {charge[name] for name in ("epsilon", "delta", "rho")} == {"0"}
    again = ask(shop, key="k")
    assert again.status_code == 409
    assert again.json()["type"].endswith("query-released")
    kinds = [e["kind"] for e in shop("ana", "GET", "/v1/ledger").json()["items"]]
    assert kinds[:2] == ["release", "charge"]


@pytest.mark.usefixtures("heavy")
def test_who_waits_for_a_cancelled_query_is_told(shop: Service) -> None:
    gate = hold(shop)
    with ThreadPoolExecutor(1) as pool:
        reply = pool.submit(ask, shop)
        items: list[dict[str, Any]] = []
        while not items:
            items = shop("ana", "GET", "/v1/queries").json()["items"]
        assert shop("ana", "DELETE", f"/v1/queries/{items[0]['id']}").status_code == 204
        gate.set()
        assert reply.result().status_code == 409
        assert reply.result().json()["type"].endswith("query-released")
    assert spent(shop) == "0"


def test_an_answer_that_is_stored_late_is_seen_at_the_next_tick(
    shop: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit that misses its instant must not reveal when it ended."""
    ledger = services(shop).ledger
    settle, stored, go = ledger.settle, threading.Event(), threading.Event()

    async def slow(reservation: Any, **reply: Any) -> bool:
        done = await settle(reservation, **{**reply, "release_us": reservation.reserved_us})
        stored.set()
        await asyncio.to_thread(go.wait, PATIENCE)
        return done

    monkeypatch.setattr(ledger, "settle", slow)
    path = ask(shop, "respond-async", "k").headers["Location"]
    assert stored.wait(PATIENCE)
    try:
        query = shop("ana", "GET", path).json()
        assert (query["status"], query["released"]) == ("running", None)
        assert shop("ana", "GET", "/v1/queries").json()["items"][0]["status"] == "running"
        assert ask(shop, key="k").json()["type"].endswith("still-running")
        assert shop("ana", "DELETE", path).json()["type"].endswith("too-late")
    finally:
        go.set()
    assert status(shop, path, headers=WAIT) == "answered"
    assert ask(shop, key="k").status_code == 201


def test_an_attempt_that_lost_replies_with_the_stored_answer(
    shop: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another attempt settles first: only its answer leaves the service."""
    ledger = services(shop).ledger
    settle = ledger.settle
    stored = b'{"status":"answered","answer":{"selected":"of the other attempt"}}'

    async def second(reservation: Any, *, status: int, body: bytes, release_us: int) -> bool:
        earlier = release_us - 100_000
        assert await settle(reservation, status=201, body=stored, release_us=earlier)
        return await settle(reservation, status=status, body=body, release_us=release_us)

    monkeypatch.setattr(ledger, "settle", second)
    reply = ask(shop)
    assert (reply.status_code, reply.content) == (201, stored)
    assert reply.headers["Idempotency-Replayed"] == "true"
    assert spent(shop) == "0.1"


def test_an_attempt_that_lost_to_one_without_an_answer_ends_at_its_deadline(
    shop: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that took the query over may be dead by then, so nobody waits for its answer."""
    ledger = services(shop).ledger
    settle = ledger.settle

    async def lost(reservation: Any, **reply: Any) -> bool:
        taken = update(query).where(query.c.id == reservation.query_id)
        values = {"attempt": 2, "lease_until": 0}
        services(shop).database.write(lambda connection: connection.execute(taken.values(values)))
        return await settle(reservation, **reply)

    with monkeypatch.context() as patch:
        patch.setattr(ledger, "settle", lost)
        reply = ask(shop, key="k")
    assert (reply.status_code, reply.json()["type"]) == (409, "/problems/still-running")
    assert not services(shop).answering._running
    assert not services(shop).answering._in_flight.total
    assert ask(shop, key="k").status_code == 201
    assert spent(shop) == "0.1"


def test_leases_are_renewed_after_any_error_of_the_database(
    shop: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    running, renewals = services(shop).answering._attempts, count()
    running._lease = 0.03

    async def fails(*_reservations: Any) -> bool:
        next(renewals)
        raise ZeroDivisionError  # any error that no part of the service knows

    monkeypatch.setattr(services(shop).ledger, "renew", fails)
    assert ask(shop).status_code == 201
    assert next(renewals) > 1


@pytest.mark.usefixtures("heavy")
def test_the_end_of_work_that_missed_every_deadline_frees_no_slot(
    shop: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slot is freed at an end of the schedule, a public instant, and not when the work ends."""
    go_on = paused(monkeypatch)
    # The query must run in a thread: on the event loop its work would hold up everything else.
    monkeypatch.setattr(attempts, "INLINE", -1.0)
    monkeypatch.setattr(attempts, "MOST_MISSES", 0)
    finished: list[tuple[Ticket, float]] = []
    scheduler = services(shop).answering._scheduler
    finish = scheduler.finish

    def noted(ticket: Ticket, end: float) -> None:
        finished.append((ticket, end))
        finish(ticket, end)

    monkeypatch.setattr(scheduler, "finish", noted)
    assert ask(shop).json()["type"] == "/problems/still-running"
    go_on.set()
    until(lambda: len(finished) == 1)
    ((ticket, end),) = finished
    assert ticket.begin is not None
    doublings = math.log2((end - ticket.begin) / ticket.length)
    assert doublings == pytest.approx(round(doublings), abs=1e-6)


def test_an_answer_that_cannot_be_stored_leaves_the_query_running_at_the_deadline(
    shop: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the database fails at the end of the work, the error must not reveal that time.

    The charge stays, and the key runs the query again once its lease is over.
    """

    async def away(_reservation: Any, **_reply: Any) -> bool:
        raise Busy("the database cannot answer now")

    with monkeypatch.context() as patch:
        patch.setattr(services(shop).ledger, "settle", away)
        started = time.monotonic()
        reply = ask(shop, key="k")
    assert (reply.status_code, reply.headers["Retry-After"]) == (409, "1")
    assert reply.json()["type"].endswith("still-running")
    assert time.monotonic() - started >= INTERVAL
    assert spent(shop) == "0.1"
    late = update(query).where(query.c.state == 0).values(lease_until=0)
    services(shop).database.write(lambda connection: connection.execute(late))
    again = ask(shop, key="k")
    assert (again.status_code, again.json()["id"]) == (201, reply.json()["id"])
    assert spent(shop) == "0.1"


def test_a_service_that_stops_answers_what_is_under_way(shop: Service) -> None:
    reply = ask(shop, "respond-async", "k")
    shop.client.__exit__(None, None, None)
    shop.client.__enter__()
    replay = ask(shop, key="k")
    assert replay.status_code == 201
    assert replay.json()["id"] == reply.json()["id"]
    assert spent(shop) == "0.1"


def paused(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """The work of selections waits until this event is set."""
    compute, go_on = Selection.compute, threading.Event()

    def slow(*args: Any) -> Any:
        assert go_on.wait(PATIENCE)
        return compute(*args)

    monkeypatch.setattr(Selection, "compute", slow)
    return go_on


def released_after(service: Service) -> int:
    """Intervals from reservation to deadline of the latest query, as everyone sees them.

    On a busy machine a query starts late or misses deadlines, and leaves some intervals later.
    """
    latest = service("ana", "GET", "/v1/queries").json()["items"][0]
    created, released = (datetime.fromisoformat(latest[at]) for at in ("created", "released"))
    intervals = (released - created).total_seconds() / INTERVAL
    assert intervals == pytest.approx(round(intervals))
    return round(intervals)


class Held:
    """All slots of a service, which other queries hold until ``set`` is called."""

    def __init__(self, service: Service) -> None:
        self._scheduler = services(service).answering._scheduler
        self._portal = service.client.portal
        assert self._portal is not None
        now = time.monotonic()
        slots = service.settings.slots()
        # Queries of the length LONG (ten seconds) hold all slots for longer than any test takes.
        # Longer queries would have to leave one slot free.
        self._tickets = [Ticket(-i - 1, LONG, 1.0) for i in range(slots)]
        for ticket in self._tickets:
            self._portal.call(self._scheduler.enter, ticket, now)

    def set(self) -> None:
        assert self._portal is not None
        for ticket in self._tickets:
            self._portal.call(self._scheduler.finish, ticket, time.monotonic())


def hold(service: Service) -> Held:
    return Held(service)


@pytest.fixture
def heavy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every query needs a slot, whatever its cost."""
    monkeypatch.setattr(schedule, "LIGHT", -1.0)


#: The edges of a graph that is a perfect matching, and of its neighbour with one more edge.
MATCHING = "source,target\n" + "".join(f"{i},{i + 1}\n" for i in range(0, 10, 2))
ONE_MORE = MATCHING + "1,2\n"
PARETO = {
    "kind": "selection",
    "utilities": [{"name": "degree"}, {"name": "egocentric_betweenness"}],
    "objective": "pareto",
    "sensitivity": "local",
}


@pytest.mark.long
@pytest.mark.parametrize("settings", [6.0], indirect=True)
def test_neighbours_have_one_quote_and_one_time_although_one_takes_longer(
    people: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that the work of a query takes shows in what the analyst or the owner sees."""
    compute = Selection.compute

    def slow(query: Selection, context: Any) -> Any:
        time.sleep(0.5 * (len(context.records.indices) // 2 - 5))
        return compute(query, context)

    monkeypatch.setattr(Selection, "compute", slow)
    monkeypatch.setattr(attempts, "INLINE", -1.0)
    paths, quotes = {}, []
    for name, edges in (("x", MATCHING), ("y", ONE_MORE)):
        people.dataset("olga", edges.encode(), name=name, nodes={"count": 10}, max_degree=9)
        people.grant("olga", name, "ana", "1")
        body = {"dataset": name, "epsilon": "0.000001", "query": PARETO}
        quotes.append(people("ana", "POST", "/v1/quotes", json=body).json())
        asynchronous = {"Prefer": "respond-async"}
        reply = people("ana", "POST", "/v1/queries", json=body, headers=asynchronous)
        paths[name] = reply.headers["Location"]
    assert quotes[0] == quotes[1]
    assert quotes[0]["seconds"] == 6.0
    for path in paths.values():
        assert status(people, path, headers=WAIT) == "answered"
    for who in ("ana", "olga", "otto"):
        listed = [people(who, "GET", path).json() for path in paths.values()]
        if who == "ana":
            listed = people("ana", "GET", "/v1/queries").json()["items"]
        # The owner and the auditor see a query as running until the first full minute after its
        # answer left. So there may be no time of release yet.
        times = [
            [datetime.fromisoformat(one[at]) for at in ("created", "released") if one[at]]
            for one in listed
        ]
        if who == "ana":
            assert [(end - start).total_seconds() for start, end in times] == [6.0, 6.0]
        else:  # The owner and the auditor see whole minutes, which hide a missed deadline.
            assert {at.second + at.microsecond for one in times for at in one} == {0}
