"""Floods of connections without a key, against a real process."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from app.demo.service import ServiceProcess
from tests.process.session import QUERY, Session
from tests.support.patience import REPLY, until

MEGABYTE = 10**6
#: The memory that any flood may add.
MOST = 100 * MEGABYTE
HEAD = b"GET / HTTP/1.1\r\nhost: x\r\nx: "


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """One service for all tests: the last one stops it."""
    folder = tmp_path_factory.mktemp("floods") / "data"
    settings = {
        "PURSE_RELEASE_INTERVAL": "0",
        "PURSE_HEADER_TIMEOUT": "3",
        "PURSE_BODY_TIMEOUT": "10",
    }
    with ServiceProcess(folder, **settings) as running:
        yield running


@pytest.fixture(scope="module")
def session(service: ServiceProcess) -> Session:
    return Session.open(service)


#: What each connection of a flood sends.
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
    with httpx.Client(timeout=REPLY) as client:
        begun = time.monotonic()
        assert client.get(service.url + "/readyz").status_code == 200
        return time.monotonic() - begun


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
        # The kernel may take a few megabytes that the service never reads.
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
    before = memory(service)
    # On a machine without other work this is a few milliseconds, and the bound is the second.
    calm = max(seconds_until_ready(service) for _ in range(5))
    slowest, descriptors = 0.0, 0
    with ExitStack() as closing:
        for number in range(3_000):
            address = f"127.0.{number % 20}.1"
            send(closing.enter_context(connect(service, address)), FLOODS[flood])
            if number % 500 == 499:
                slowest = max(slowest, seconds_until_ready(service))
                replies = [ask(session, f"{flood} {number}") for _ in range(2)]
                assert [reply.status_code for reply in replies] == [201, 201], replies[0].text
                assert replies[0].content == replies[1].content
                descriptors = max(descriptors, descriptors_of(service))
        assert memory(service) - before < MOST
        assert slowest < 1 + 10 * calm
        # A connection that had its reply is closed sooner than one that waits for a request.
        assert descriptors > 1_000 or flood == "replies"
        until(lambda: descriptors_of(service) < 200, "what waits is closed in time")


def test_a_slow_body_does_not_delay_a_stop(service: ServiceProcess) -> None:
    with connect(service) as connection:
        form = b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000\r\n"
        origin = b"Host: x\r\nOrigin: https://x\r\n"
        send(connection, b"POST /ui/sign-in HTTP/1.1\r\n" + origin + form + b"\r\nkey")
        time.sleep(0.5)
        connection.setblocking(False)
        with pytest.raises(BlockingIOError):
            connection.recv(1)  # it waits for the rest
        begun = time.monotonic()
        assert service.stop(seconds=REPLY) == 0
        # Half of the grace of 30 seconds: a busy machine may be slow by itself.
        assert time.monotonic() - begun < 15
