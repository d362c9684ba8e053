"""A ledger for callers without an event loop: its coroutines run on a loop in a thread.

So every suite drives the path that serves.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from functools import cache, wraps
from inspect import iscoroutinefunction
from typing import Any, TypeVar

from storage.ledger.ledger import Ledger

T = TypeVar("T")


class BlockingLedger:
    """Everything that ``ledger`` has; what is a coroutine there blocks here."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self.ledger = Ledger(*arguments, **named)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.ledger, name)
        if not iscoroutinefunction(value):
            return value

        @wraps(value)
        def blocking(*arguments: Any, **named: Any) -> Any:
            return self._finished(value(*arguments, **named))

        return blocking

    def _finished(self, call: Coroutine[Any, Any, T]) -> T:
        return finished(call)


def finished(call: Coroutine[Any, Any, T]) -> T:
    """The value of ``call``; the loop that runs it serves all threads of this process."""
    return asyncio.run_coroutine_threadsafe(call, _loop(os.getpid())).result()


@cache
def _loop(_process: int) -> asyncio.AbstractEventLoop:
    # A forked child inherits the event loop of its parent but not the thread that runs it, so each
    # process starts its own loop.
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="blocking", daemon=True).start()
    return loop
