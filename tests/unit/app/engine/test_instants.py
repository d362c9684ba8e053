"""Requests between the end of a query's work and its deadline reveal nothing of the work.

On virtual time, so that they come before the deadline on every machine, and nobody waits for it.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from app.config.settings import Settings
from app.engine.attempts import Attempts
from app.engine.deadlines import Clock
from app.main import create_app
from benchmarks.service.planted import give_slots
from tests.support.patience import WAIT
from tests.support.service import EDGES, GRAPH
from tests.support.virtual_time import VirtualTime

INTERVAL = 60.0
QUERY = {"kind": "selection", "utilities": [{"name": "degree"}]}
BODY = {"dataset": "triangle", "epsilon": "0.1", "query": QUERY}

Send = Callable[..., Awaitable[httpx.Response]]
Play = Callable[[Callable[[Send], Coroutine[Any, Any, None]]], None]


@pytest.fixture
def play(
    settings: Settings,
    begun: tuple[Path, dict[str, str]],
    fast_lane: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> Play:
    """Runs a story in which ana may query a graph, with one slot for a query at a time."""
    folder, keys = begun
    virtual = VirtualTime(monkeypatch)
    shutil.copytree(folder, settings.data)
    own = settings.model_copy(update={"release_interval": INTERVAL, "workers": 1})
    give_slots(1, monkeypatch.setattr)

    @asynccontextmanager
    async def opened() -> AsyncIterator[Send]:
        app = create_app(own, fast_lane=fast_lane)
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://service", timeout=None) as http,
        ):

            async def send(who: str, method: str, path: str, **sent: Any) -> httpx.Response:
                headers = sent.pop("headers", {}) | {"Authorization": f"Bearer {keys[who]}"}
                return await http.request(method, path, headers=headers, **sent)

            yield send

    async def scenario(story: Callable[[Send], Coroutine[Any, Any, None]]) -> None:
        async with opened() as send:
            assert (await send("olga", "POST", "/v1/datasets", json=GRAPH)).status_code == 201
            csv, path = {"Content-Type": "text/csv"}, "/v1/datasets/triangle"
            uploaded = await send("olga", "PUT", f"{path}/records", content=EDGES, headers=csv)
            assert uploaded.status_code == 201, uploaded.text
            await send("olga", "PUT", f"{path}/budgets/ana", json={"epsilon": "1"})
            await story(send)

    return lambda story: virtual.run(scenario(story))


async def ask(send: Send, key: str | None = None) -> httpx.Response:
    headers = {"Prefer": "respond-async"} | ({"Idempotency-Key": key} if key else {})
    return await send("ana", "POST", "/v1/queries", json=BODY, headers=headers)


async def released_after(send: Send) -> float:
    """Intervals from reservation to deadline of the latest query, as everyone sees them."""
    latest = (await send("ana", "GET", "/v1/queries")).json()["items"][0]
    created, released = (datetime.fromisoformat(latest[at]) for at in ("created", "released"))
    return (released - created).total_seconds() / INTERVAL


async def type_of(reply: Awaitable[httpx.Response]) -> str:
    return str((await reply).json()["type"])


def test_until_the_deadline_it_is_running_everywhere(play: Play) -> None:
    async def story(send: Send) -> None:
        reply = await ask(send, "k")
        assert reply.status_code == 202
        assert reply.headers["Retry-After"]
        path = reply.headers["Location"]
        body = reply.json()
        assert (body["status"], body["id"]) == ("running", path.rsplit("/", 1)[1])
        assert 0 <= body["elapsed"] < body["expected"]
        await asyncio.sleep(INTERVAL / 2)  # The work has ended, but the deadline has not come.
        query = (await send("ana", "GET", path)).json()
        assert (query["status"], query["released"]) == ("running", None)
        assert "answer" not in query
        assert query["expected"] == INTERVAL
        listed = (await send("ana", "GET", "/v1/queries")).json()["items"]
        assert listed[0]["status"] == "running"
        assert (await type_of(ask(send, "k"))).endswith("still-running")
        assert (await type_of(send("ana", "DELETE", path))).endswith("too-late")
        (account,) = (await send("ana", "GET", "/v1/budgets")).json()["items"]
        assert account["spent"]["epsilon"] == "0.1"
        waited = await send("ana", "GET", path, headers=WAIT)
        assert waited.json()["status"] == "answered"
        replay = await ask(send, "k")
        assert (replay.status_code, replay.content) == (201, waited.content)

    play(story)


def test_a_slot_is_taken_until_the_deadline_of_its_query(play: Play) -> None:
    """Whether a query can be cancelled must not reveal when the work before it ended."""

    async def story(send: Send) -> None:
        await ask(send, "first")
        second = (await ask(send, "k")).headers["Location"]
        # The work of the first query has ended, but its deadline has not come.
        await asyncio.sleep(INTERVAL / 4)
        assert (await send("ana", "DELETE", second)).status_code == 204
        third = (await ask(send)).headers["Location"]
        waited = (await send("ana", "GET", third, headers=WAIT)).json()
        assert waited["status"] == "answered"
        # The third query began only at the deadline of the first, and its answer left one interval
        # later.
        assert 1.7 < await released_after(send) <= 2
        assert (await type_of(send("ana", "DELETE", third))).endswith("too-late")

    play(story)


@pytest.mark.parametrize(
    ("took", "power"), [(0.5, 1), (0.76, 2), (1.7, 2), (1.9, 4), (3.0, 4), (3.8, 8), (20.0, 32)]
)
def test_work_that_ends_late_leaves_at_a_doubled_deadline(
    took: float, power: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Work on the event loop blocks its own timer: it is over, and late all the same."""

    async def story() -> None:
        attempts, attempt, job = finished(took * INTERVAL)
        # A quarter of the interval is set aside to store the answer.
        assert await stored(attempts, attempt, job) == pytest.approx(power - 0.25, abs=0.02)
        assert (attempt.length, 2**attempts.misses) == (power * INTERVAL, power)

    VirtualTime(monkeypatch).run(story())


def test_work_that_ends_in_time_and_is_seen_late_is_no_miss(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The event loop may be blocked by other work, which tells nothing about this one."""

    async def story() -> None:
        attempts, attempt, job = finished(1.3 * INTERVAL, ended=0.7 * INTERVAL)
        assert await attempts._in_time(job, attempt)
        assert (attempt.length, attempts.misses) == (INTERVAL, 0)

    VirtualTime(monkeypatch).run(story())


@pytest.mark.parametrize(("started", "ticks"), [(0.0, 1), (0.7, 2), (1.0, 2), (1.7, 3)])
@pytest.mark.parametrize("took", [0.0, 0.7])
def test_work_that_starts_late_leaves_later_whenever_it_ends(
    started: float, ticks: int, took: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When a busy service comes to a query tells nothing about its records."""

    async def story() -> None:
        end = min(started + took, ticks - 0.25)
        attempts, attempt, job = finished(end * INTERVAL, started=started * INTERVAL)
        assert await stored(attempts, attempt, job) == pytest.approx(ticks - 0.25, abs=0.02)
        assert (attempt.length, attempts.misses) == (ticks * INTERVAL, 0)

    VirtualTime(monkeypatch).run(story())


def test_work_that_has_not_started_by_its_deadline_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        attempts, attempt, job = finished(0.0)
        attempt.work_started = attempt.work_ended = None
        job = asyncio.get_running_loop().create_future()

        def work() -> None:
            attempt.work_started = attempt.work_ended = time.monotonic()
            job.set_result(None)

        asyncio.get_running_loop().call_later(2.5 * INTERVAL, work)
        assert await attempts._in_time(job, attempt)
        assert (attempt.length, attempts.misses) == (4 * INTERVAL, 0)

    VirtualTime(monkeypatch).run(story())


def test_nobody_waits_for_work_that_could_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """To wait for a job that is over returns at once: a loop of such waits would never end."""

    async def story() -> None:
        attempts, attempt, job = finished(0.0)
        attempt.work_started = attempt.work_ended = None
        monkeypatch.setattr(attempts, "_to_store", None)
        await attempts._has_started(job, attempt)
        assert attempt.length == INTERVAL

    VirtualTime(monkeypatch).run(story())


async def stored(attempts: Attempts, attempt: Any, job: asyncio.Future[None]) -> float:
    """Intervals from the begin until the answer of work that misses no last deadline is stored."""
    assert await attempts._in_time(job, attempt)
    return float(time.monotonic() - attempt.begin) / INTERVAL


def finished(
    took: float, ended: float | None = None, started: float = 0.0
) -> tuple[Attempts, Any, asyncio.Future[None]]:
    """A query that began ``took`` seconds ago, and its work.

    ``started`` and ``ended``: seconds from the begin to those of the work.
    """
    attempts, now = Attempts.__new__(Attempts), time.monotonic()
    vars(attempts).update(_clock=Clock(INTERVAL), misses=0)
    job: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    job.set_result(None)
    begin = now - took
    attempt = SimpleNamespace(
        ticket=SimpleNamespace(length=INTERVAL, cost=0.0),
        begin=begin,
        length=INTERVAL,
        work_started=begin + started,
        work_ended=now if ended is None else begin + ended,
    )
    return attempts, attempt, job
