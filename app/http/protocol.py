"""HTTP/1.1 on one connection: what a client without a key can make the service hold has a bound.

uvicorn parses requests and writes replies, and limits the queue of the system (``backlog``) and
the time of idle connections (``timeout_keep_alive``). With httptools it limits neither the bytes
nor the time of headers, and its ``limit_concurrency`` refuses probes like everything else. This
subclass adds these limits; ``app.http.connections`` counts the connections.

The attributes of the base class are not documented. Tests hold the list of those that are used
here, and uvicorn is pinned to a minor version.
"""

from __future__ import annotations

import asyncio
from secrets import token_hex
from typing import Any

from starlette.responses import Response
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from app.contract import problems
from app.http.body import ARRIVED
from app.http.connections import Admission, Connections, Wait
from app.http.middleware import PROBES_ONLY

#: The most headers and trailers of one request. Each takes more memory than its text, so a limit on
#: bytes alone is not enough.
HEADERS = 100
#: The most requests that a client may send before it has the replies to earlier ones.
PIPELINED = 8
#: The parser gets received bytes in parts of this size, and limits are checked after each. It would
#: otherwise keep an unfinished element of any length in memory.
PART = 16 * 1024


class _Refused(Exception):
    """A callback of the parser raises this; the parser then stops."""


class _ReplyTransport(asyncio.WriteTransport):
    """The transport of one reply: its head leaves together with the first part of its body.

    Written one by one they take two calls of the system, and the second takes about a fifteenth
    of the time of a replay. A reply whose length is not declared may begin long before its body,
    so its head leaves at once.
    """

    def __init__(self, cycle: RequestResponseCycle) -> None:
        super().__init__()
        self._transport = cycle.transport
        #: The object by which uvicorn handles the request; None once the head of the reply was
        #: written. It refers to this transport, so without None both would stay in memory until a
        #: garbage collection.
        self._cycle: RequestResponseCycle | None = cycle
        self._head = b""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._head:
            head, self._head = self._head, b""
            self._transport.write(b"".join((head, data)))
            return
        # The head of a reply of known length is held back until its body follows. The interim "100
        # Continue", which comes before the reply, is sent immediately. So is the head of a reply to
        # HEAD, which has no body.
        if self._cycle is not None and self._cycle.response_started:
            has_length = self._cycle.chunked_encoding is False
            is_apart = has_length and self._cycle.scope["method"] != "HEAD"
            self._cycle = None
            if is_apart:
                self._head = bytes(data)
                return
        self._transport.write(data)

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def close(self) -> None:
        if self._head:
            self.write(b"")
        self._transport.close()


class GuardedProtocol(HttpToolsProtocol):
    """One connection, counted in ``connections``, whose head has a limit of bytes and of time."""

    def __init__(self, connections: Connections, **options: Any) -> None:
        super().__init__(**options)
        self._guard = connections
        #: The bytes of the current head (request line and headers) that callbacks have received,
        #: and the number of its headers.
        self._head, self._count = 0, 0
        #: The bytes that the parser has received since its last callback. It may hold all of them
        #: in memory, so they are limited too.
        self._silent = 0
        self._in_head, self._in_body = False, False
        self._reader_is_slow = False
        self._probes_only = False
        self._refusal = problems.INVALID_REQUEST

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        admission = self._guard.enter(self, self.client[0] if self.client else "")
        if admission is Admission.NOTHING:
            transport.abort()
        elif admission is Admission.PROBES:
            self._probes_only = True
            self.app_state = {**self.app_state, PROBES_ONLY: True}

    def connection_lost(self, exc: Exception | None) -> None:
        self._guard.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        for start in range(0, len(data), PART):
            if self.transport.is_closing():
                return
            part = data[start : start + PART] if len(data) > PART else data
            self._silent += len(part)
            super().data_received(part)
            if self._silent > self._guard.limits.head_bytes and not self.transport.is_closing():
                self._refusal = problems.HEADERS_TOO_LARGE
                self.send_400_response()
        self._note_wait()

    def on_message_begin(self) -> None:
        self._head, self._count, self._silent = 0, 0, 0
        self._in_head = True
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._take(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        # The parser calls this for trailers too (headers after the body), so they count as well.
        self._count += 1
        self._take(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._silent = 0
        self._in_head, self._in_body = False, True
        super().on_headers_complete()
        self.cycle.transport = _ReplyTransport(self.cycle)  # type: ignore[assignment]
        if self._probes_only:
            # This connection may reach the probes alone. It is closed after the reply, because the
            # client's next connection may be within the limit.
            self.cycle.keep_alive = False
        if len(self.pipeline) > PIPELINED:
            self.transport.abort()
            raise _Refused

    def on_body(self, body: bytes) -> None:
        self._silent = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._silent = 0
        self._in_body = False
        super().on_message_complete()
        self.cycle.scope["state"][ARRIVED] = not self.cycle.more_body

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._note_wait()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._reader_is_slow = True
        self._note_wait()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._reader_is_slow = False
        self._note_wait()

    def send_400_response(self, msg: str = "") -> None:
        """Refuse what was received, by a problem instead of ``msg``, and close the connection."""
        del msg
        if self.transport.is_closing():
            return
        if not self._may_refuse():
            self.transport.abort()
            return
        self.transport.write(_written(problems.response(self._refusal, token_hex(8))))
        self.transport.close()

    def shutdown(self) -> None:
        super().shutdown()
        self._guard.stop()

    def expire(self) -> None:
        if self.transport.is_closing() or not self._in_head:
            self.transport.abort()
            return
        self._refusal = problems.REQUEST_TIMEOUT
        self.send_400_response()

    def abort(self) -> None:
        self.transport.abort()

    def unread(self) -> int:
        return self.transport.get_write_buffer_size()

    def _take(self, size: int) -> None:
        self._silent = 0
        self._head += size
        if self._head > self._guard.limits.head_bytes or self._count > HEADERS:
            self._refusal = problems.HEADERS_TOO_LARGE
            raise _Refused

    def _may_refuse(self) -> bool:
        """False if a client would take a refusal for the reply to another request, or its rest."""
        if self._works_on_request():
            return self._in_body and not self.cycle.response_started and not self.pipeline
        return not self._in_body

    def _works_on_request(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _note_wait(self) -> None:
        """Tell ``connections`` whether the client or the service has to act next."""
        if self._reader_is_slow:
            self._guard.begin(self, Wait.READ)
        elif not self._works_on_request():
            self._guard.begin(self, Wait.HEAD)
        elif self.cycle.more_body:
            self._guard.begin(self, Wait.BODY)
        else:
            self._guard.begin(self, None)


def _written(reply: Response) -> bytes:
    """The bytes of a reply after which the connection is closed."""
    headers = [*reply.raw_headers, (b"connection", b"close"), (b"cache-control", b"no-store")]
    lines = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
    return STATUS_LINE[reply.status_code] + lines + b"\r\n" + bytes(reply.body)
