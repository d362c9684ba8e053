"""The scheduler begins queries by the clock, also while the event loop is busy."""

from __future__ import annotations

import asyncio
from functools import partial
from types import SimpleNamespace

import pytest

from app.engine import scheduler
from app.engine.schedule import Schedule, Ticket
from app.engine.scheduler import Scheduler


def test_what_is_due_begins_before_the_timer_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    now = SimpleNamespace(at=100.0)
    monkeypatch.setattr(scheduler, "time", SimpleNamespace(monotonic=lambda: now.at))

    async def story() -> None:
        driver, started = Scheduler(Schedule(slots=1, processors=1.0)), list[int]()
        for number in range(6):
            ticket = Ticket(1, 0.025, 0.002)
            ticket.start = partial(started.append, number)
            driver.enter(ticket, now.at)
        # Light queries that begin together may cost 5 ms in all, and these six cost 2 ms each. No
        # timer starts the rest, because the test never yields to the event loop.
        at_once = len(started)
        assert 0 < at_once < 6
        driver.catch_up()
        assert len(started) == at_once
        now.at += 1
        driver.catch_up()
        assert started == [*range(6)]
        assert driver.waiting == 0

    asyncio.run(story())
