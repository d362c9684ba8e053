"""A run time that depends on the records shows nowhere; without the clock it shows everywhere.

Two neighbouring tables of a whole service, one of which takes 5 s longer to answer, watched through
every channel of the bench ``one_clock``, on a time in which waiting takes no time: what lies apart
by less than half of the difference is alike. Each way in which the clock might be broken is seeded,
and seen through its channel. ``test_one_clock_over_http.py`` and the benchmark do it in real time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.config.settings import Settings
from app.engine import attempts
from app.engine.admission import InFlight
from app.engine.answering import Answering
from app.engine.attempts import Attempt, Attempts
from app.engine.reply import replayed
from app.engine.schedule import Ticket
from app.engine.scheduler import Scheduler
from app.main import create_app
from app.queries.statistic.body import StatisticQuery
from benchmarks.service.one_clock import ALONE, CHANNELS, SETTINGS, Lane, peopled
from benchmarks.service.planted import give_slots
from storage.ledger import replay
from storage.queries import history
from tests.support.virtual_time import VirtualTime

#: In seconds: the interval of the clock that releases answers, the work of every answer, and the
#: extra work of some.
INTERVAL, WORK, MORE = 40.0, 10.0, 5.0
#: Seconds between two polls of a query.
GAP = 0.5
ALL = CHANNELS.keys() | ALONE.keys()

Patch = pytest.MonkeyPatch


@pytest.fixture
def virtual(monkeypatch: Patch) -> VirtualTime:
    """Virtual time, in which the table with an odd number of rows takes longer."""
    clock = VirtualTime(monkeypatch)
    compute = StatisticQuery.compute

    def planted(query: StatisticQuery, context: Any) -> Any:
        rows = context.records.rows
        clock.sleep(WORK + MORE * (rows % 2))
        return compute(query, context)

    monkeypatch.setattr(StatisticQuery, "compute", planted)
    return clock


async def differences(
    folder: Path, interval: float, watched: Collection[str], patch: Callable[..., None]
) -> dict[str, float]:
    """Channel → seconds by which the longer table is observed later than the shorter one."""
    gaps = {}
    for slots, in_flight, all_channels in SETTINGS:
        channels = {name: channel for name, channel in all_channels.items() if name in watched}
        if not channels:
            continue
        settings = Settings(
            data=folder / str(slots),
            database_url=None,
            workers=2,
            release_interval=interval,
            in_flight_per_analyst=in_flight,
            upload_wait=300,
        )
        give_slots(slots, patch)
        app = create_app(settings)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(
                transport=httpx.ASGITransport(app), base_url="http://service", timeout=None
            ) as http,
        ):
            root = Lane(http, settings.bootstrap_key_file.read_text().strip())
            (lane,) = await peopled(http, root, 1, GAP)
            for name, channel in channels.items():
                seen = {}
                for table in ("shorter", "longer"):
                    seen[table] = await channel(lane, table)
                    # If the clock is broken a query may still run, so wait before the next
                    # measurement.
                    await asyncio.sleep(2 * INTERVAL)
                gaps[name] = seen["longer"] - seen["shorter"]
    return gaps


def told_apart(
    virtual: VirtualTime,
    folder: Path,
    interval: float = INTERVAL,
    watched: Collection[str] = ALL,
) -> set[str]:
    """Those of the watched channels that distinguish the two tables."""
    gaps = virtual.run(differences(folder, interval, watched, virtual.patch))
    assert gaps.keys() == set(watched)
    return {name for name, seconds in gaps.items() if abs(seconds) > MORE / 2}


def test_with_the_clock_no_channel_tells_the_tables_apart(
    virtual: VirtualTime, tmp_path: Path
) -> None:
    assert told_apart(virtual, tmp_path) == set()


def test_without_it_every_channel_does(virtual: VirtualTime, tmp_path: Path) -> None:
    assert told_apart(virtual, tmp_path, interval=0) == ALL


def _answers_leave_early(patch: Patch) -> None:
    """Deadlines are stored and reported, but the reply leaves as soon as it is ready."""

    async def at_once(_instant: float) -> None: ...

    patch.setattr(attempts, "until", at_once)


def _stored_early(patch: Patch) -> None:
    """Answers are stored when the work ends, not before their deadline."""

    async def at_end(_: Attempts, job: Any, _attempt: Attempt) -> bool:
        await asyncio.wait([job])
        return True

    patch.setattr(Attempts, "_in_time", at_end)


def _conflicts_end_early(patch: Patch) -> None:
    """The stored answer is given in place of 409 as soon as it is stored."""
    _stored_early(patch)
    judge = replay.judge

    def early(row: Any, *rest: Any) -> Any:
        return judge(row._replace(release_us=row.now) if row.query_state == 1 else row, *rest)

    patch.setattr(replay, "judge", early)
    patch.setattr(
        Answering,
        "_replayed",
        lambda _, reply: replayed(reply.query_id, reply.status, reply.body),
    )


def _states_show_early(patch: Patch) -> None:
    """GET says "answered" as soon as the answer is stored."""
    _stored_early(patch)
    patch.setattr(history, "_status", lambda row: ("running", "answered")[row.state])
    patch.setattr(Answering, "as_seen", lambda _, row: row)


def _counts_fall_early(patch: Patch) -> None:
    """A query is in flight until its work ends."""
    compute, charge, leave = Attempts._compute, Answering._run, InFlight.leave
    in_flight: dict[int, InFlight] = {}

    def noted(self: Answering, *rest: Any) -> Any:
        in_flight[id(self._attempts)] = self._in_flight
        return charge(self, *rest)

    def counted(self: Attempts, attempt: Attempt, *rest: Any) -> Any:
        try:
            return compute(self, attempt, *rest)
        finally:
            leave(in_flight[id(self)], attempt.ticket.analyst)

    patch.setattr(Answering, "_run", noted)
    patch.setattr(Attempts, "_compute", counted)
    patch.setattr(InFlight, "leave", lambda *_: None)


def _slots_are_free_early(patch: Patch) -> None:
    """The next query begins when the work before it ends."""
    in_time, finish = Attempts._in_time, Scheduler.finish

    def once(self: Scheduler, ticket: Ticket, end: float) -> None:
        if not ticket.is_over:
            finish(self, ticket, end)

    patch.setattr(Scheduler, "finish", once)

    async def early(self: Attempts, job: Any, attempt: Attempt) -> bool:
        def free(_: object) -> None:
            self._scheduler.finish(attempt.ticket, time.monotonic())

        job.add_done_callback(free)
        return await in_time(self, job, attempt)

    patch.setattr(Attempts, "_in_time", early)


def _deadlines_follow_the_work(patch: Patch) -> None:
    """An answer is released some time after its work, not at a deadline of its own."""

    async def at_end(_: Attempts, job: Any, attempt: Attempt) -> bool:
        await asyncio.wait([job])
        attempt.length = time.monotonic() - attempt.begin + INTERVAL
        return True

    patch.setattr(Attempts, "_in_time", at_end)


@pytest.mark.parametrize(
    ("fault", "seen"),
    [
        (_answers_leave_early, {"reply"}),
        (_conflicts_end_early, {"repeating the key"}),
        (_states_show_early, {"polling"}),
        (_counts_fall_early, {"in flight"}),
        (_slots_are_free_early, {"cancelling"}),
        (_deadlines_follow_the_work, {"reply", "history"}),
    ],
)
def test_a_clock_that_is_broken_is_seen(
    virtual: VirtualTime,
    monkeypatch: Patch,
    tmp_path: Path,
    fault: Callable[[Patch], None],
    seen: set[str],
) -> None:
    fault(monkeypatch)
    assert told_apart(virtual, tmp_path, watched=seen) == seen
