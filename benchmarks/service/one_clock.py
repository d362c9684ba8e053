"""Whether a run time that depends on the records shows, with the one clock on and off.

Two neighbouring tables are asked the same question; on one of them the answer takes 5 ms longer
(``benchmarks.service.planted``). Each is asked so many times by a real service over HTTP, and
watched through every channel there is: the reply, the times in the history, polling, repeating the
key, queries in flight, and cancelling a query that waits behind it. With the clock off every
channel must tell the two tables apart, or the check sees nothing; with it on none may.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import httpx

from benchmarks.bench import Bar, Bench, Setting
from benchmarks.result import Cell, Result
from benchmarks.service.planted import SLOTS, planted_service
from benchmarks.service.telling_apart import Pair, chance_if_alike

#: The chance that a single check is wrong. For all checks together it stays below 10⁻⁶.
ALPHA = 1e-7
#: The rows of the two neighbouring tables, and of a third one whose queries only watch the others.
TABLES = {"shorter": 100, "longer": 101, "watching": 100}
AMPLE = {"epsilon": "1000000", "delta": "0"}
QUERY = {
    "kind": "statistic",
    "statistic": "count",
    "where": {"attribute": "bit", "in": ["0"]},
}
#: A check is evaluated after each of these numbers of pairs, until it tells the tables apart. Every
#: evaluation has an equal share of ``ALPHA``.
LOOKS = (32, 64, 128, 300)


@dataclass(frozen=True)
class Trial:
    """Seconds: the interval of the clock, what every answer takes, and what some take longer."""

    interval: float = 0.1
    work: float = 0.010
    more: float = 0.005
    #: Seconds between two requests that observe the state of a query.
    gap: float = 0.001
    #: How many analysts ask concurrently while answers leave at public instants (the clock is on),
    #: where they do not disturb each other.
    lanes: int = 3
    #: How many analysts ask concurrently while answers leave when they are ready (the clock is
    #: off), where the work of one delays the others.
    lanes_off: int = 1
    #: Starts a service on a folder. Its statistics take ``work`` seconds, and some take ``more``
    #: seconds on top. The service has a ``url`` and an ``admin_key``.
    serve: Callable[..., AbstractContextManager[Any]] = planted_service


class Lane:
    """One analyst, who has one query in flight at a time."""

    def __init__(self, http: httpx.AsyncClient, key: str, gap: float = 0.0) -> None:
        self._http, self._bearer = http, {"Authorization": f"Bearer {key}"}
        self.gap = gap

    async def send(self, method: str, path: str, **request: Any) -> httpx.Response:
        headers = self._bearer | request.pop("headers", {})
        return await self._http.request(method, path, headers=headers, **request)

    async def ask(self, table: str, **headers: str) -> httpx.Response:
        body = {"dataset": table, "epsilon": "0.001", "query": QUERY}
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.send("POST", "/v1/queries", json=body, headers=names)

    async def begin(self, table: str, **headers: str) -> str:
        """Ask without waiting; the path of the query."""
        reply = await self.ask(table, Prefer="respond-async", **headers)
        assert reply.status_code == 202, reply.text
        return str(reply.headers["Location"])

    async def finish(self, path: str) -> None:
        headers = {"Prefer": "wait=60"}
        assert (await self.send("GET", path, headers=headers)).json()["status"] == "answered"


Channel = Callable[[Lane, str], Awaitable[float]]


async def reply(lane: Lane, table: str) -> float:
    """Seconds until the answer is here."""
    started = time.perf_counter()
    answer = await lane.ask(table, Prefer="wait=120")
    assert answer.status_code == 201, answer.text
    return time.perf_counter() - started


async def history(lane: Lane, table: str) -> float:
    """Seconds between the two times in the list of queries."""
    await reply(lane, table)
    listed = (await lane.send("GET", "/v1/queries?limit=1")).json()["items"]
    created, released = (datetime.fromisoformat(listed[0][at]) for at in ("created", "released"))
    return (released - created).total_seconds()


async def polling(lane: Lane, table: str) -> float:
    """Seconds until GET says that it is answered."""
    started = time.perf_counter()
    path = await lane.begin(table)
    while (await lane.send("GET", path)).json()["status"] == "running":
        await asyncio.sleep(lane.gap)
    return time.perf_counter() - started


async def repeating(lane: Lane, table: str) -> float:
    """Seconds until the same key gets the stored answer in place of 409."""
    started, key = time.perf_counter(), uuid4().hex
    await lane.begin(table, Idempotency_Key=key)
    while (again := await lane.ask(table, Idempotency_Key=key)).status_code == 409:
        await asyncio.sleep(lane.gap)
    assert again.status_code == 201, again.text
    return time.perf_counter() - started


async def in_flight(lane: Lane, table: str) -> float:
    """Seconds until the analyst's only place in flight admits another query."""
    started = time.perf_counter()
    await lane.begin(table)
    later = {"Prefer": "respond-async"}
    while (other := await lane.ask("watching", **later)).status_code == 429:
        await asyncio.sleep(lane.gap)
    seconds = time.perf_counter() - started
    await lane.finish(other.headers["Location"])
    return seconds


async def cancelling(lane: Lane, table: str) -> float:
    """Seconds until a query that waits behind it can no longer be cancelled."""
    started = time.perf_counter()
    first = await lane.begin(table)
    while True:
        waiting = await lane.begin("watching")
        if (await lane.send("DELETE", waiting)).status_code == 409:
            break
        await asyncio.sleep(lane.gap)
    seconds = time.perf_counter() - started
    await lane.finish(first)
    await lane.finish(waiting)
    return seconds


#: What an analyst can time on a service that has a slot (the right to run) for every query.
CHANNELS: dict[str, Channel] = {
    "reply": reply,
    "history": history,
    "polling": polling,
    "repeating the key": repeating,
    "in flight": in_flight,
}
#: What an analyst can time on a service with one slot, if their own later queries wait for it.
ALONE: dict[str, Channel] = {"cancelling": cancelling}


@asynccontextmanager
async def lanes(
    trial: Trial, count: int, interval: float, slots: int, in_flight: int
) -> AsyncIterator[list[Lane]]:
    """So many analysts of a fresh service with the two tables."""
    settings = {
        "PURSE_RELEASE_INTERVAL": str(interval),
        SLOTS: str(slots),
        "PURSE_IN_FLIGHT_PER_ANALYST": str(in_flight),
        "PURSE_UPLOAD_WAIT": "60",
    }
    with (
        TemporaryDirectory() as folder,
        trial.serve(Path(folder) / "data", trial.work, trial.more, settings) as service,
    ):
        async with httpx.AsyncClient(base_url=service.url, timeout=120) as http:
            yield await peopled(http, Lane(http, service.admin_key), count, trial.gap)


async def peopled(http: httpx.AsyncClient, root: Lane, count: int, gap: float) -> list[Lane]:
    """So many analysts of a fresh service, with an allowance for each of the tables."""

    async def person(name: str, role: str) -> Lane:
        user = await root.send("POST", "/v1/users", json={"name": name, "roles": [role]})
        return Lane(http, user.json()["key"], gap)

    owner = await person("owner", "owner")
    analysts = [await person(f"analyst{i}", "analyst") for i in range(count)]
    for name, rows in TABLES.items():
        body = {
            "name": name,
            "kind": "table",
            "neighbouring": "add_remove",
            "max_rows": 1000,
            "attributes": [{"name": "bit", "kind": "categorical", "values": ["0", "1"]}],
            "cap": AMPLE,
        }
        path = f"/v1/datasets/{name}"
        content, headers = b"bit\n" + b"0\n" * rows, {"Content-Type": "text/csv"}
        replies = [
            await owner.send("POST", "/v1/datasets", json=body),
            await owner.send("PUT", f"{path}/records", content=content, headers=headers),
            *[
                await owner.send("PUT", f"{path}/budgets/analyst{i}", json=AMPLE)
                for i in range(count)
            ],
        ]
        assert all(reply.is_success for reply in replies), [reply.text for reply in replies]
        while (await owner.send("GET", path)).json()["status"] != "ready":
            await asyncio.sleep(0.05)
    # One query per analyst and table warms the service up before anything is measured.
    for lane in analysts:
        for name in TABLES:
            await reply(lane, name)
    return analysts


async def observed(channel: Channel, lane: Lane, coins: Random) -> Pair:
    """What one pair shows: the shorter table and the longer one, in the order of a coin."""
    order = ["shorter", "longer"]
    coins.shuffle(order)
    seen = {table: await channel(lane, table) for table in order}
    return seen["shorter"], seen["longer"]


async def pairs(channel: Channel, among: list[Lane], count: int, coins: Random) -> list[Pair]:
    """So many pairs, shared by the lanes."""
    numbers = iter(range(count))

    async def walk(lane: Lane) -> list[Pair]:
        return [await observed(channel, lane, coins) for _ in numbers]

    return [pair for walked in await asyncio.gather(*map(walk, among)) for pair in walked]


async def power(channel: Channel, among: list[Lane], coins: Random) -> tuple[int, float]:
    """How many pairs it took to tell the tables apart, and the chance of that by accident."""
    seen: list[Pair] = []
    for look in LOOKS:
        seen += await pairs(channel, among, look - len(seen), coins)
        chance = float(chance_if_alike(seen))
        if chance * len(LOOKS) <= ALPHA:
            break
    return len(seen), chance * len(LOOKS)


#: The slots of the service, the most queries in flight per analyst, and the channels that are
#: timed.
SETTINGS = ((16, 1, CHANNELS), (1, 256, ALONE))
#: By channel: the number of pairs of times, and the probability that the times of two equal tables
#: are as one-sided by accident.
Seen = dict[str, tuple[int, float]]


async def with_clock_off(trial: Trial, coins: Random) -> Seen:
    """What an analyst finds who sees run times."""
    seen: Seen = {}
    for slots, in_flight_limit, channels in SETTINGS:
        count = trial.lanes_off if slots > 1 else 1
        async with lanes(trial, count, 0, slots, in_flight_limit) as among:
            for name, channel in channels.items():
                seen[name] = await power(channel, among, coins)
    return seen


async def with_clock_on(trial: Trial, runs: Mapping[str, int], coins: Random) -> Seen:
    """What analysts find who see deadlines, from so many pairs by channel."""
    seen: Seen = {}

    async def watch(slots: int, in_flight_limit: int, channels: dict[str, Channel]) -> None:
        count = trial.lanes if slots > 1 else 1
        async with lanes(trial, count, trial.interval, slots, in_flight_limit) as among:
            for name, channel in channels.items():
                observations = await pairs(channel, among, runs[name], coins)
                seen[name] = len(observations), float(chance_if_alike(observations))

    await asyncio.gather(*(watch(*settings) for settings in SETTINGS))
    return seen


def run(result: Result, setting: Setting) -> None:
    coins = Random()
    off = asyncio.run(with_clock_off(Trial(), coins))
    on = asyncio.run(with_clock_on(Trial(), dict.fromkeys(off, setting.size(300, 20)), coins))
    rows: list[list[Cell]] = []
    for name, (needed, apart) in off.items():
        watched, alike = on[name]
        rows.append([name, needed, f"{apart:.1e}", watched, f"{alike:.2g}"])
        result.measure(f"{name}, clock off: chance if alike", apart)
        result.measure(f"{name}, clock on: chance if alike", alike)
    columns = ["channel", "pairs, off", "chance, off", "pairs, on", "chance, on"]
    result.table("the chance that pairs are as one-sided by accident", columns, rows)


BENCHES = (
    Bench(
        "one_clock", "Does a run time that depends on the records show in any channel?", run, 420.0,
        ("the same service with its clock off",),
        (
            Bar("*, clock off: chance if alike", most=ALPHA),
            Bar("*, clock on: chance if alike", least=ALPHA),
        ),
    ),
)  # fmt: skip
