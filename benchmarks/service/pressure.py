"""A client that presses as hard as a server can take: raw sockets, one request at a time each.

It writes prepared bytes and reads up to the end of each reply, so that one process can keep a
server of the same machine busy.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import uvloop


@dataclass(frozen=True)
class Replies:
    """How many per second, by status, and the time that the slowest in a hundred take."""

    rate: float
    p99_ms: float
    statuses: Mapping[int, int]

    @property
    def count(self) -> int:
        return sum(self.statuses.values())


def press(port: int, make: Callable[[], bytes], *, connections: int, seconds: float) -> Replies:
    """Send what ``make`` makes over so many connections for so long."""
    return uvloop.run(_press(port, make, connections, seconds))


def post(path: str, body: bytes, headers: Mapping[str, str]) -> bytes:
    """A request as bytes."""
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def get(path: str, headers: Mapping[str, str]) -> bytes:
    """A request without a body as bytes."""
    lines = [f"GET {path} HTTP/1.1", "Host: localhost"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


class _Connection(asyncio.Protocol):
    def __init__(self, make: Callable[[], bytes], ends: float) -> None:
        self._make, self._ends = make, ends
        self._buffer, self._begun = b"", 0.0
        self.done = asyncio.Event()
        self.latencies: list[float] = []
        self.statuses: Counter[int] = Counter()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport
        self._send()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, blank, rest = self._buffer.partition(b"\r\n\r\n")
        if not blank:
            return
        _, _, length = head.lower().partition(b"content-length: ")
        if len(rest) < int(length.split(b"\r\n", 1)[0]):
            return
        self.statuses[int(head[9:12])] += 1
        now = time.perf_counter()
        self.latencies.append(now - self._begun)
        self._buffer = b""
        if now < self._ends:
            self._send()
        else:
            self._transport.close()
            self.done.set()

    def _send(self) -> None:
        self._begun = time.perf_counter()
        self._transport.write(self._make())


async def _press(port: int, make: Callable[[], bytes], connections: int, seconds: float) -> Replies:
    loop, started = asyncio.get_running_loop(), time.perf_counter()
    clients: list[_Connection] = []
    for _ in range(connections):
        _, client = await loop.create_connection(
            lambda: _Connection(make, started + seconds), "127.0.0.1", port
        )
        clients.append(client)
    async with asyncio.timeout(seconds + 60):
        for client in clients:
            await client.done.wait()
    taken = time.perf_counter() - started
    latencies = sorted(one for client in clients for one in client.latencies)
    statuses = sum((client.statuses for client in clients), Counter[int]())
    p99 = latencies[len(latencies) * 99 // 100]
    return Replies(len(latencies) / taken, p99 * 1e3, dict(statuses))
