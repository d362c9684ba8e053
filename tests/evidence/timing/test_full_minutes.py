"""Owners and auditors see a query change at full minutes only, and no missed deadline.

Two queries on a whole service: one ends before its deadline, the other misses it. Everything that
an owner or an auditor can watch is polled, on a time in which waiting takes no time.
"""

from __future__ import annotations

import asyncio
import json
import time
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest

from app.config.settings import Settings
from app.engine import attempts
from app.main import create_app
from app.queries.statistic.body import StatisticQuery
from benchmarks.service.one_clock import Lane, peopled
from tests.support.virtual_time import VirtualTime

#: In seconds: the deadline of both queries, and the work of the query that misses it.
DEADLINE, LATE = 10.0, 12.0
#: The times of the polls, in seconds after a full minute. Deadlines and releases lie between two of
#: them.
POLLS = (6.0, 16.0, 26.0, 64.0)
MINUTE = 60.0


@pytest.fixture
def virtual(monkeypatch: pytest.MonkeyPatch) -> VirtualTime:
    """Virtual time, in which queries on the table with an odd number of rows miss the deadline."""
    clock = VirtualTime(monkeypatch)
    compute = StatisticQuery.compute

    def planted(query: StatisticQuery, context: Any) -> Any:
        if context.records.rows % 2:
            clock.sleep(LATE)
        return compute(query, context)

    monkeypatch.setattr(StatisticQuery, "compute", planted)
    # Work must run in a thread, because work that sleeps on the event loop would stop the virtual
    # time.
    monkeypatch.setattr(attempts, "INLINE", -1.0)
    return clock


async def until_second(second: float) -> None:
    """Wait until so many seconds after the next full minute."""
    await asyncio.sleep(MINUTE - time.time_ns() / 1e9 % MINUTE + second)


async def view(reader: Lane, table: str, path: str) -> str:
    """Everything about a query that an owner or an auditor can read, without names and days."""
    one = (await reader.send("GET", path, headers={"Prefer": "wait=100"})).json()
    listed = (await reader.send("GET", f"/v1/queries?dataset={table}&limit=1")).json()["items"]
    signed = (await reader.send("GET", f"/v1/datasets/{table}/certificate")).text
    bound = jwt.decode(signed, options={"verify_signature": False})["answers"]
    is_bound = path.rpartition("/")[2] in {answer["query"] for answer in bound}
    states = [
        [row.get(name) for name in ("status", "elapsed", "expected")] for row in (one, *listed)
    ]
    lengths = [seconds_between(row) for row in (one, *listed)]
    return json.dumps([states, lengths, is_bound])


def seconds_between(row: dict[str, Any]) -> float | None:
    """Seconds from the charge of a query to its release, as the row shows them."""
    if row["released"] is None:
        return None
    start, end = (datetime.fromisoformat(row[at]) for at in ("created", "released"))
    return (end - start).total_seconds()


async def watched(folder: Path) -> dict[str, Any]:
    """By table: what an owner and an auditor see, and how long it took for the analyst."""
    settings = Settings(data=folder, database_url=None, workers=2, release_interval=DEADLINE)
    app = create_app(settings)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://service", timeout=None
        ) as http,
    ):
        root = Lane(http, settings.bootstrap_key_file.read_text().strip())
        (analyst,) = await peopled(http, root, 1, 0)
        auditor = {"name": "auditor", "roles": ["auditor"]}
        replies = [
            await root.send("POST", "/v1/users/owner/keys", json={}),
            await root.send("POST", "/v1/users", json=auditor),
        ]
        readers = [Lane(http, reply.json()["key"]) for reply in replies]
        seen: dict[str, Any] = {}
        for table in ("shorter", "longer"):
            await until_second(0)
            path = await analyst.begin(table)
            views = []
            for before, at in pairwise((0.0, *POLLS)):
                await asyncio.sleep(at - before)
                views.append([await view(reader, table, path) for reader in readers])
            own = seconds_between(
                (await analyst.send("GET", "/v1/queries?limit=1")).json()["items"][0]
            )
            seen[table] = {"views": views, "own": own}
        return seen


def test_a_missed_deadline_does_not_show_to_those_who_pay_nothing(
    virtual: VirtualTime, tmp_path: Path
) -> None:
    seen = virtual.run(watched(tmp_path))
    in_time, late = seen["shorter"], seen["longer"]
    # The analyst sees that a deadline was missed: the answer leaves at twice the time of the
    # deadline.
    assert (in_time["own"], late["own"]) == (DEADLINE, 2 * DEADLINE)
    assert in_time["views"] == late["views"]
    for one in (in_time, late):
        *running, (ended, _) = one["views"]
        assert len({view for row in running for view in row}) == 1
        assert "answered" in ended
