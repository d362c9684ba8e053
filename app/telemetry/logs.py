"""Logs as JSON lines. Only the fields in ``ALLOWED`` are written.

A line contains no body, path with names, query string, exception text or count.
"""

import asyncio
import atexit
import json
import logging
import sys
import threading
from collections.abc import MutableMapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TextIO

import structlog
from structlog.typing import FilteringBoundLogger

#: The only fields that a log line may have. All others are dropped, so that no record or secret
#: reaches a log.
ALLOWED = frozenset(
    {"event", "level", "timestamp", "logger"}
    | {"request_id", "method", "route", "status", "error", "version", "host", "port"}
)
OWN = "privypurse"
#: The configured logger. It is shared, because making a logger takes longer than writing a line.
ready: FilteringBoundLogger = structlog.get_logger(OWN)
#: Libraries whose complete messages may be logged: they contain only addresses of sockets and
#: versions of the schema.
SPEAKING = ("uvicorn", "alembic")


def rendered(_: object, level: str, event: MutableMapping[str, Any]) -> str:
    """The JSON line of an event, with only the fields in ``ALLOWED``."""
    allowed = {key: value for key, value in event.items() if key in ALLOWED}
    return json.dumps({**allowed, "level": level, "timestamp": _moment()})


def _moment() -> str:
    return datetime.now(UTC).isoformat().removesuffix("+00:00") + "Z"


class JsonLine(logging.Formatter):
    """One line per log record. Lines of libraries are reduced to their public fields."""

    def format(self, record: logging.LogRecord) -> str:
        if record.name.startswith(OWN):
            return record.getMessage()
        own = record.name.startswith(SPEAKING)
        fields = {
            # For other libraries only the message template is written, because the arguments may be
            # private.
            "event": record.getMessage() if own else str(record.msg),
            "level": record.levelname.lower(),
            "logger": record.name,
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(),
        }
        if record.exc_info and record.exc_info[0]:
            fields["error"] = record.exc_info[0].__qualname__
        return json.dumps(fields)


class Lines:
    """Writes the lines of this service to a stream.

    All lines of one iteration of an event loop are written together, because writing each alone
    takes a twentieth of the time of a replay. A line that cannot be written is lost, as it is with
    the handlers of ``logging``.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._lines: list[str] = []
        #: The event loop on which the next write of the collected lines is scheduled; None if none
        #: is.
        self._writer: asyncio.AbstractEventLoop | None = None
        atexit.register(self._write)

    def msg(self, line: str) -> None:
        with self._lock:
            self._lines.append(line + "\n")
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # This thread has no event loop, so the line is written now.
            self._write()
            return
        if loop is not self._writer:
            self._writer = loop
            loop.call_soon(self._write)

    def _write(self) -> None:
        with self._lock:
            lines, self._lines, self._writer = self._lines, [], None
            with suppress(OSError, ValueError):  # A closed stream raises ValueError.
                self._stream.write("".join(lines))
                self._stream.flush()

    debug = info = warning = error = critical = msg


#: Writes the service's own log lines to standard error. Those of libraries get there by a
#: handler of ``logging``.
lines = Lines(sys.stderr)


def note_request(request_id: str, method: str, route: str, status: int | None) -> None:
    """Write the line of one request. Its fields are in ``ALLOWED``.

    There is one with every reply, so most of its text is cached. ``structlog`` takes a twentieth of
    the time of a replay for the same line.
    """
    own = f', "request_id": "{request_id}", "timestamp": "{_moment()}"}}'
    lines.msg(_request(method, route, status) + own)


@lru_cache
def _request(method: str, route: str, status: int | None) -> str:
    """The text that the lines of equal requests begin with."""
    fields = {"event": "request", "level": "info", "method": method, "route": route}
    return json.dumps({**fields, "status": status}).removesuffix("}")


def configure() -> None:
    """Send the lines of this service and of its libraries to standard error."""
    global ready, lines
    handler = logging.StreamHandler()
    lines = Lines(handler.stream)
    structlog.configure(
        processors=[rendered],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=lambda *_: lines,
        cache_logger_on_first_use=False,
    )
    ready = structlog.get_logger(OWN).bind()
    # Otherwise, if a handler failed to write a line, ``logging`` would print the arguments of the
    # line, which may be private.
    logging.raiseExceptions = False
    handler.setFormatter(JsonLine())
    root = logging.getLogger()
    for old in [h for h in root.handlers if isinstance(h.formatter, JsonLine)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    for name in (OWN, "uvicorn"):
        logging.getLogger(name).setLevel(logging.INFO)
