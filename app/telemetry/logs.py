"""Logs as JSON lines of named fields; what is not on the list does not get out.

No bodies, no paths with names in them, no query strings, no exception texts, no counts.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import logging
import threading
from collections.abc import MutableMapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TextIO

import structlog
from structlog.typing import FilteringBoundLogger

#: Every field that a line may have.
ALLOWED = frozenset(
    {"event", "level", "timestamp", "logger"}
    | {"request_id", "method", "route", "status", "error", "version", "host", "port"}
)
OWN = "privypurse"
_ENCODER = json.JSONEncoder()
#: A logger as last configured: to make another takes longer than to write a line with it.
ready: FilteringBoundLogger = structlog.get_logger(OWN)
#: Libraries whose messages are about sockets and schema versions, arguments included.
SPEAKING = ("uvicorn", "alembic")


def only_allowed(_: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Drop every field that is not on the list."""
    return {key: value for key, value in event.items() if key in ALLOWED}


def stamped(_: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    event["timestamp"] = datetime.now(UTC).isoformat().removesuffix("+00:00") + "Z"
    return event


class JsonLine(logging.Formatter):
    """One line a record: ours come rendered, those of libraries are reduced to what is safe."""

    def format(self, record: logging.LogRecord) -> str:
        if record.name.startswith(OWN):
            return record.getMessage()
        known = record.name.startswith(SPEAKING)
        fields = {
            # A message's arguments may be anything, so the others' are left out of their text.
            "event": record.getMessage() if known else str(record.msg),
            "level": record.levelname.lower(),
            "logger": record.name,
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(),
        }
        if record.exc_info and record.exc_info[0]:
            fields["error"] = record.exc_info[0].__qualname__
        return json.dumps(fields)


class Lines:
    """Our own lines, straight to the stream: a record of ``logging`` takes longer than all else.

    What one turn of an event loop has to say is written at its end, in one piece. A line that
    cannot be written is lost, as with the handlers of ``logging``.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._said: list[str] = []
        #: The loop that will write what is said.
        self._writer: asyncio.AbstractEventLoop | None = None
        atexit.register(self._write)

    def msg(self, line: str) -> None:
        with self._lock:
            self._said.append(line + "\n")
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # on a thread of another kind
            self._write()
            return
        if loop is not self._writer:
            self._writer = loop
            loop.call_soon(self._write)

    def _write(self) -> None:
        with self._lock:
            said, self._said, self._writer = self._said, [], None
        with suppress(OSError, ValueError):  # ValueError: the stream is closed
            self._stream.write("".join(said))
            self._stream.flush()

    debug = info = warning = error = critical = msg


def configure(level: int = logging.INFO) -> None:
    """Send the lines of this service and of its libraries to standard error."""
    global ready
    handler = logging.StreamHandler()
    lines = Lines(handler.stream)
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            stamped,
            only_allowed,
            lambda _logger, _level, event: _ENCODER.encode(event),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=lambda *_: lines,
        cache_logger_on_first_use=False,
    )
    ready = structlog.get_logger(OWN).bind()
    # When a line cannot be written, the standard handlers print the values it was made of.
    logging.raiseExceptions = False
    handler.setFormatter(JsonLine())
    root = logging.getLogger()
    for old in [h for h in root.handlers if isinstance(h.formatter, JsonLine)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    for name in (OWN, "uvicorn"):
        logging.getLogger(name).setLevel(level)
