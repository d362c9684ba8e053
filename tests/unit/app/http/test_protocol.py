"""The protocol of one connection, driven in memory: what it refuses, and what it never holds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from app.http.body import ARRIVED
from app.http.connections import Connections, Limits
from app.http.middleware import Observed
from app.http.protocol import HEADERS, PART, PIPELINED, GuardedProtocol
from app.telemetry.metrics import Metrics
from tests.support.virtual_time import VirtualTime

HEAD_BYTES, HEAD_SECONDS, STALL = 4096, 10.0, 60.0
GET = b"GET /healthz HTTP/1.1\r\nhost: x\r\n"
Play = Callable[[], Awaitable[None]]


class Wire(asyncio.Transport):
    """A transport that records what is written; the other side reads it only on request."""

    def __init__(self, protocol: GuardedProtocol, address: str) -> None:
        super().__init__({"peername": (address, 1), "sockname": ("10.0.0.1", 2)})
        self.protocol, self.sent, self.unread = protocol, b"", 0
        self.closing = self.aborted = False

        self.writes = 0

    def write(self, data: Any) -> None:
        self.sent += bytes(data)
        self.writes += 1

    def writelines(self, parts: Any) -> None:
        self.write(b"".join(parts))

    def get_write_buffer_size(self) -> int:
        return self.unread

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        if not self.closing:
            self.closing = True
            if not self.unread:
                asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)

    def abort(self) -> None:
        if not self.aborted:
            self.closing = self.aborted = True
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Door:
    """A server without sockets: ``app`` behind the limits of the service."""

    def __init__(self, app: Any, connections: int = 8) -> None:
        limits = Limits(connections, connections, (), HEAD_BYTES, HEAD_SECONDS, STALL)
        self.guard = Connections(limits)
        self.config = uvicorn.Config(app, log_config=None, ws="none", timeout_keep_alive=5)
        self.state = ServerState()

    def connect(self, address: str = "10.0.0.9") -> Wire:
        protocol = GuardedProtocol(
            self.guard, config=self.config, server_state=self.state, app_state={}
        )
        wire = Wire(protocol, address)
        protocol.connection_made(wire)
        return wire


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Replies with the length of the body."""
    assert scope["type"] == "http"
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size, more = size + len(message["body"]), message["more_body"]
    body = b"%d" % size
    headers = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[[Play], None]:
    virtual = VirtualTime(monkeypatch)
    return lambda play: virtual.run(play())  # type: ignore[arg-type]


UNFINISHED = {
    "headers": b"".join(b"x%d: %s\r\n" % (n, b"a" * 90) for n in range(90)),
    "many headers": b"a:b\r\n" * (HEADERS + 1),
    "a header": b"x: " + b"a" * (2 * HEAD_BYTES + PART),
    "a name": b"a" * (2 * HEAD_BYTES + PART),
}


@pytest.mark.parametrize("rest", UNFINISHED.values(), ids=UNFINISHED)
@pytest.mark.parametrize("size", [1 << 20, 100])
def test_an_unfinished_head_is_refused_at_its_limit(
    run: Callable[[Play], None], rest: bytes, size: int
) -> None:
    async def play() -> None:
        wire = Door(echo).connect()
        data = GET + rest
        for start in range(0, len(data), size):
            wire.protocol.data_received(data[start : start + size])
            if wire.is_closing():
                break
        assert wire.sent.startswith(b"HTTP/1.1 431 ")
        assert b"/problems/headers-too-large" in wire.sent
        assert wire.is_closing()

    run(play)


def test_a_long_address_is_refused(run: Callable[[Play], None]) -> None:
    async def play() -> None:
        wire = Door(echo).connect()
        wire.protocol.data_received(b"GET /" + b"a" * 2 * HEAD_BYTES)
        assert wire.sent.startswith(b"HTTP/1.1 431 ")

    run(play)


@pytest.mark.parametrize(
    "endless",
    [
        b"0\r\nx: " + b"a" * (2 * HEAD_BYTES + PART),
        b"0\r\n" + b"x: a\r\n" * (HEADERS + 1),
        b"1;" + b"a" * (2 * HEAD_BYTES + PART),
    ],
    ids=["a trailer", "many trailers", "an extension of a chunk"],
)
def test_what_surrounds_a_chunked_body_is_bounded_too(
    run: Callable[[Play], None], endless: bytes
) -> None:
    async def play() -> None:
        wire = Door(echo).connect()
        head = b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
        wire.protocol.data_received(head + b"1\r\na\r\n" + endless)
        assert wire.sent.startswith(b"HTTP/1.1 431 ")

    run(play)


def test_a_head_below_the_limit_and_a_large_body_are_read(run: Callable[[Play], None]) -> None:
    async def play() -> None:
        wire = Door(echo).connect()
        head = b"POST / HTTP/1.1\r\nhost: x\r\nx: %s\r\ncontent-length: 1000000\r\n\r\n"
        wire.protocol.data_received(head % (b"a" * (HEAD_BYTES - 200)) + b"b" * 1_000_000)
        await asyncio.sleep(0.1)
        assert wire.sent.endswith(b"\r\n\r\n1000000")
        assert not wire.is_closing()

    run(play)


def test_a_body_has_arrived_once_its_last_byte_has(run: Callable[[Play], None]) -> None:
    seen = []

    async def note(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["state"].get(ARRIVED, False))
        await echo(scope, receive, send)
        seen.append(scope["state"][ARRIVED])

    async def play() -> None:
        whole = b"POST / HTTP/1.1\r\ncontent-length: 4\r\n\r\nbody"
        for parts in ([whole], [whole[:-1], whole[-1:]]):
            wire = Door(note).connect()
            for part in parts:
                wire.protocol.data_received(part)
                await asyncio.sleep(1)
            assert wire.sent.endswith(b"\r\n\r\n4")

    run(play)
    assert seen == [True, True, False, True]


@pytest.mark.parametrize(
    ("sent", "status"), [(b"", b""), (b"GET", b"HTTP/1.1 408 "), (GET, b"HTTP/1.1 408 ")]
)
def test_a_head_that_does_not_end_is_closed_in_time(
    run: Callable[[Play], None], sent: bytes, status: bytes
) -> None:
    async def play() -> None:
        wire = Door(echo).connect()
        if sent:
            wire.protocol.data_received(sent)
        for _ in range(8):
            await asyncio.sleep(1)
            assert not wire.is_closing()
            if sent.endswith(b"\n"):
                # A client that sends its head in small parts gets no more time for it.
                wire.protocol.data_received(b"a: b\r\n")
        await asyncio.sleep(3)
        assert wire.is_closing()
        assert wire.sent[: len(status)] == status
        assert bool(wire.sent) == bool(status)

    run(play)


def test_a_reply_that_nobody_reads_is_given_up(run: Callable[[Play], None]) -> None:
    async def play() -> None:
        wire = Door(echo).connect()
        wire.protocol.data_received(GET + b"\r\n")
        wire.unread = 1000
        wire.protocol.pause_writing()
        await asyncio.sleep(HEAD_SECONDS + 2)
        early = wire.aborted
        await asyncio.sleep(STALL)
        wire.protocol.resume_writing()  # Until this call the task of the request waits.
        assert (early, wire.aborted) == (False, True)

    run(play)


def test_a_closed_connection_whose_reply_nobody_reads_is_aborted(
    run: Callable[[Play], None],
) -> None:
    async def play() -> None:
        wire = Door(echo).connect()
        wire.protocol.data_received(GET + b"\r\n")
        await asyncio.sleep(0.1)
        wire.unread = 1000  # So few unread bytes do not make the transport pause writing.
        await asyncio.sleep(6)
        assert (wire.closing, wire.aborted) == (True, False)
        await asyncio.sleep(HEAD_SECONDS)
        assert wire.aborted

    run(play)


def test_a_refusal_that_nobody_reads_is_given_up(run: Callable[[Play], None]) -> None:
    async def play() -> None:
        wire = Door(echo).connect()
        wire.unread = 1000  # The client does not read the refusal, so it stays in the buffer.
        wire.protocol.data_received(GET)
        await asyncio.sleep(HEAD_SECONDS + 3)
        assert wire.sent.startswith(b"HTTP/1.1 408 ")
        assert wire.aborted

    run(play)


def test_a_client_that_pipelines_without_end_is_cut_off(run: Callable[[Play], None]) -> None:
    async def play() -> None:
        wire = Door(echo).connect()
        wire.protocol.data_received((GET + b"\r\n") * (PIPELINED + 1))
        assert not wire.is_closing()
        wire = Door(echo).connect()
        wire.protocol.data_received((GET + b"\r\n") * 1000)
        assert wire.aborted
        assert len(wire.protocol.pipeline) == PIPELINED + 1

    run(play)


def test_no_refusal_is_taken_for_the_reply_to_an_earlier_request(
    run: Callable[[Play], None],
) -> None:
    async def play() -> None:
        wire = Door(echo).connect()
        wire.protocol.data_received(GET + b"\r\n" + GET + UNFINISHED["a header"] + b"a" * PART)
        assert wire.aborted
        assert wire.sent == b""

    run(play)


def test_probes_answer_while_every_connection_is_at_work(run: Callable[[Play], None]) -> None:
    async def endless(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/healthz":
            await echo(scope, receive, send)
        await asyncio.Event().wait()

    async def play() -> None:
        door = Door(Observed(endless, Metrics()), connections=2)
        for _ in range(2):
            door.connect().protocol.data_received(b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n")
        probe, other = door.connect(), door.connect()
        probe.protocol.data_received(GET + b"\r\n")
        other.protocol.data_received(b"GET /v1/me HTTP/1.1\r\nhost: x\r\n\r\n")
        await asyncio.sleep(0.1)
        assert probe.sent.startswith(b"HTTP/1.1 200 ")
        assert other.sent.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: 1\r\n" in other.sent
        assert b"/problems/busy" in other.sent
        assert b"connection: close\r\n" in other.sent
        assert other.is_closing()
        for task in door.state.tasks:
            task.cancel()

    run(play)


def announced(length: bytes | None) -> Any:
    """An application that replies in two parts, with or without a declared length."""

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        headers = [] if length is None else [(b"content-length", length)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await asyncio.sleep(1)
        await send({"type": "http.response.body", "body": b"HTTP/1.1 ", "more_body": True})
        await asyncio.sleep(1)
        await send({"type": "http.response.body", "body": b"ok", "more_body": False})

    return app


@pytest.mark.parametrize(
    ("method", "length", "writes"),
    [(b"GET", b"11", [0, 1, 2]), (b"GET", None, [1, 2, 3]), (b"HEAD", b"11", [1, 1, 1])],
)
def test_a_head_with_a_length_leaves_with_its_body(
    run: Callable[[Play], None], method: bytes, length: bytes | None, writes: list[int]
) -> None:
    async def play() -> None:
        wire = Door(announced(length)).connect()
        wire.protocol.data_received(method + b" / HTTP/1.1\r\nHost: a\r\n\r\n")
        seen = []
        for _ in writes:
            await asyncio.sleep(0.5)
            seen.append(wire.writes)
            await asyncio.sleep(0.5)
        assert seen == writes
        head, _, body = wire.sent.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        if method == b"GET":
            assert (body == b"HTTP/1.1 ok") == (length is not None)
        else:
            assert not body

    run(play)


def test_a_reply_that_fails_after_its_head_shows_its_head(run: Callable[[Play], None]) -> None:
    async def fails(_scope: Scope, _receive: Receive, send: Send) -> None:
        headers = [(b"content-length", b"2")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        raise RuntimeError

    async def play() -> None:
        wire = Door(fails).connect()
        wire.protocol.data_received(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        await asyncio.sleep(1)
        assert wire.closing
        assert wire.sent.startswith(b"HTTP/1.1 200 OK\r\n")

    run(play)


def test_a_stop_waits_for_no_client(run: Callable[[Play], None]) -> None:
    async def play() -> None:
        door = Door(echo)
        idle, half, slow = door.connect(), door.connect(), door.connect()
        half.protocol.data_received(GET)
        slow.protocol.data_received(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\na")
        for wire in (idle, half, slow):
            wire.protocol.shutdown()
        assert (idle.closing, half.closing, slow.closing) == (True, True, False)
        for _ in range(6):
            slow.protocol.data_received(b"a")
            await asyncio.sleep(0.5)
        assert slow.aborted
        await asyncio.sleep(0.1)
        assert not door.state.connections
        assert not door.state.tasks

    run(play)
