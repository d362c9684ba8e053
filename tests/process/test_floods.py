"""Floods of connections without a key, against a real process."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from sqlalchemy import func, select

from app.demo.service import ServiceProcess
from benchmarks.ledger.accounts import opened
from benchmarks.ledger.clients import fill
from storage.database.tables import dataset, query, users
from storage.ledger.requests import QueryState
from tests.process.conftest import QUICK
from tests.process.session import QUERY, Session
from tests.support.patience import REPLY, until

MEGABYTE = 10**6
#: The most bytes of memory that any flood may add to the service.
MOST = 100 * MEGABYTE
#: The number of queries in the history of an analyst: to read them takes a second.
HISTORY = 20_000
HEAD = b"GET / HTTP/1.1\r\nhost: x\r\nx: "


def process(folder: Path) -> ServiceProcess:
    settings = {
        **QUICK,
        "PURSE_HEADER_TIMEOUT": "3",
        "PURSE_BODY_TIMEOUT": "10",
    }
    return ServiceProcess(folder / "data", **settings)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """One service for all tests but one: the last one stops it."""
    with process(tmp_path_factory.mktemp("floods")) as running:
        yield running


@pytest.fixture(scope="module")
def session(service: ServiceProcess) -> Session:
    return Session.open(service)


#: Maps each kind of flood to the bytes that each of its connections sends.
FLOODS = {
    "idle": b"",
    "headers": HEAD + b"a" * 32_000,
    "bodies": b"POST /ui/sign-in HTTP/1.1\r\nHost: x\r\nOrigin: https://x\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 16000\r\n\r\n"
    + b"a"
    * 15_000,
    "replies": b"GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n",
}


def ask(session: Session, key: str) -> httpx.Response:
    """A small paid query under this key."""
    headers = {"Idempotency-Key": key}
    body = {**QUERY, "epsilon": "0.001"}
    return session.send("POST", "/v1/queries", session.analyst, json=body, headers=headers)


def descriptors_of(service: ServiceProcess) -> int:
    return len(list(Path(f"/proc/{service.pid}/fd").iterdir()))


def memory(service: ServiceProcess) -> int:
    """Resident bytes of the process."""
    return int(Path(f"/proc/{service.pid}/statm").read_text().split()[1]) * 4096


def connect(service: ServiceProcess, address: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection(("127.0.0.1", service.port), source_address=(address, 0))


def seconds_until_ready(service: ServiceProcess) -> float:
    """Seconds until the reply, without those in which other work had the processors."""
    with httpx.Client(timeout=REPLY) as client:
        begun = time.monotonic() - preempted(service)
        assert client.get(service.url + "/readyz").status_code == 200
        return time.monotonic() - preempted(service) - begun


def preempted(service: ServiceProcess) -> float:
    """Seconds for which the event loop of the service, or this test, was ready and did not run."""
    # Linux counts for the first thread of a process the nanoseconds that it ran, and those that it
    # waited for a processor.
    threads = [Path(f"/proc/{process}/schedstat") for process in (service.pid, os.getpid())]
    return sum(int(thread.read_text().split()[1]) for thread in threads) / 1e9


def send(connection: socket.socket, data: bytes) -> bool:
    """False if the service has closed the connection."""
    try:
        connection.sendall(data)
    except OSError:
        return False
    return True


def test_unfinished_headers_are_not_kept(service: ServiceProcess) -> None:
    before = memory(service)
    with connect(service) as connection:
        send(connection, HEAD)
        sent = 0
        while sent < 1_100 * MEGABYTE and send(connection, b"a" * 65_536):
            sent += 65_536
        # The kernel's socket buffers may take a few megabytes that the service never reads.
        assert sent < 50 * MEGABYTE
    assert memory(service) - before < 10 * MEGABYTE


def test_half_a_head_is_closed_in_time(service: ServiceProcess) -> None:
    with connect(service) as connection:
        send(connection, HEAD)
        connection.settimeout(REPLY)
        assert connection.recv(100).startswith(b"HTTP/1.1 408 ")


@pytest.mark.slow
@pytest.mark.parametrize("flood", FLOODS)
def test_a_flood_shuts_nobody_out(service: ServiceProcess, session: Session, flood: str) -> None:
    descriptors = endure(service, session, flood, [FLOODS[flood]])
    # The flood of replies keeps fewer connections open: one that had its reply is closed sooner
    # than one that waits for a request.
    assert descriptors > 1_000 or flood == "replies"


@pytest.mark.slow
def test_floods_and_abandoned_histories_at_once(tmp_path: Path) -> None:
    """In a new process: one that met a flood before would not grow again."""
    with process(tmp_path) as service:
        meet_floods_and_abandoned_histories(service, Session.open(service))


def meet_floods_and_abandoned_histories(service: ServiceProcess, session: Session) -> None:
    path = "/v1/budgets/star/history?by="
    histories = [
        f"GET {path}{by} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {session.analyst}\r\n\r\n"
        for by in ("day", "kind", "mechanism", "day") * 10
    ]
    with opened(f"sqlite:///{service.data}/privypurse.db", service.data) as (database, ledger):
        with database.read() as connection:
            ada = connection.execute(select(users.c.id).where(users.c.name == "ada")).scalar_one()
            star = connection.execute(select(dataset.c.id)).scalar_one()
        fill(ledger, (ada, star), HISTORY)
        flood = [FLOODS["idle"], FLOODS["headers"]]
        assert endure(service, session, "all", flood, [one.encode() for one in histories]) > 1_000
        with database.read() as connection:
            unanswered = select(func.count()).where(query.c.state != QueryState.SETTLED)
            assert connection.execute(unanswered).scalar_one() == 0
    points = session.ok("GET", path + "kind", session.analyst)["items"]
    assert sum(point["queries"] for point in points) > HISTORY


def endure(
    service: ServiceProcess,
    session: Session,
    name: str,
    flood: Sequence[bytes],
    abandoned: Sequence[bytes] = (),
) -> int:
    """Open 3,000 connections that send these bytes in turn, and ask queries at every 500.

    Each time as many requests as ``abandoned`` are sent first, and their connections closed.
    Every key must have one answer, ``/readyz`` must reply within a second and the process may take
    100 MB at most. Returns how many descriptors it had open, at most.
    """
    before = most = memory(service)
    # ``/readyz`` takes a few milliseconds on a machine without other work, so the bound is about a
    # second.
    calm = max(seconds_until_ready(service) for _ in range(5))
    slowest, descriptors = 0.0, 0
    with ExitStack() as closing:
        for number in range(3_000):
            address = f"127.0.{number % 20}.1"
            connection = closing.enter_context(connect(service, address))
            send(connection, flood[number % len(flood)])
            if number % 500 == 499:
                for request in abandoned:
                    with connect(service) as leaving:
                        assert send(leaving, request)
                slowest = max(slowest, seconds_until_ready(service))
                replies = [ask(session, f"{name} {number}") for _ in range(2)]
                assert [reply.status_code for reply in replies] == [201, 201], replies[0].text
                assert replies[0].content == replies[1].content
                descriptors = max(descriptors, descriptors_of(service))
                most = max(most, memory(service))
        assert most - before < MOST
        assert slowest < 1 + 10 * calm
        until(lambda: descriptors_of(service) < 200, "what waits is closed in time")
    return descriptors


def test_a_slow_body_does_not_delay_a_stop(service: ServiceProcess) -> None:
    with connect(service) as connection:
        form = b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000\r\n"
        origin = b"Host: x\r\nOrigin: https://x\r\n"
        send(connection, b"POST /ui/sign-in HTTP/1.1\r\n" + origin + form + b"\r\nkey")
        time.sleep(0.5)
        connection.setblocking(False)
        with pytest.raises(BlockingIOError):
            connection.recv(1)  # The service waits for the rest of the body.
        begun = time.monotonic()
        assert service.stop(seconds=REPLY) == 0
        # A stop that waited for the rest of the body would take the whole grace period of 30
        # seconds.
        assert time.monotonic() - begun < 30
