"""A run time that depends on the records shows nowhere; without the clock it shows everywhere.

Two neighbouring tables of a real service, one of which takes longer to answer; what is looked at,
and how, is in the bench ``one_clock``, which does the same with 5 ms, 100 ms and 300 runs each.
Here the difference and the interval are larger, so that it sees enough on a busy machine.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
import uvicorn

from app.config.settings import Settings
from app.main import create_app
from app.queries.statistic.body import StatisticQuery
from benchmarks.service.one_clock import (
    ALONE,
    ALPHA,
    CHANNELS,
    Trial,
    with_clock_off,
    with_clock_on,
)
from benchmarks.service.planted import SLOTS, give_slots, planted


@dataclass(frozen=True)
class Served:
    url: str
    admin_key: str


@contextmanager
def served(data: Path, _work: float, _more: float, settings: Mapping[str, str]) -> Iterator[Served]:
    """A service of this process, on a port of its own."""
    values = {
        name.removeprefix("PURSE_").lower(): value
        for name, value in settings.items()
        if name != SLOTS
    }
    give_slots(int(settings[SLOTS]), setattr)
    own = Settings(data=data, database_url=None, workers=2, **values)  # type: ignore[arg-type]
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(create_app(own), log_config=None, lifespan="on"))
        run = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        run.start()
        while not server.started:
            time.sleep(0.02)
        try:
            port = listening.getsockname()[1]
            yield Served(f"http://127.0.0.1:{port}", own.bootstrap_key_file.read_text().strip())
        finally:
            server.should_exit = True
            run.join(60)


TRIAL = Trial(interval=0.4, work=0.02, more=0.1, gap=0.05, lanes=8, lanes_off=4, serve=served)


@pytest.fixture(autouse=True)
def _planted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StatisticQuery, "compute", planted(TRIAL.work, TRIAL.more))
    # Each service of this test changes the number of slots for the whole process. This call lets
    # ``monkeypatch`` restore the number at the end.
    give_slots(1, monkeypatch.setattr)


@pytest.mark.slow  # This test waits minutes for deadlines but does little work.
def test_every_channel_tells_the_tables_apart_unless_the_clock_is_on() -> None:
    """As many pairs do not tell them apart as did, in the same minute, without the clock.

    A false alarm has a chance below 10⁻⁶: six channels at 10⁻⁷.
    """
    off = asyncio.run(with_clock_off(TRIAL, Random(1)))
    assert off.keys() == CHANNELS.keys() | ALONE.keys()
    blind = {name: seen for name, seen in off.items() if seen[1] > ALPHA}
    assert not blind
    needed = {name: pairs for name, (pairs, _) in off.items()}
    on = asyncio.run(with_clock_on(TRIAL, needed, Random(2)))
    assert on.keys() == off.keys()
    apart = {name: seen for name, seen in on.items() if seen[1] <= ALPHA}
    assert not apart
