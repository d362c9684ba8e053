"""An event loop on which waiting takes no real time: an hour of timers passes immediately.

While a thread works for the loop, time passes at its real rate. When only timers remain, all
clocks of the process jump to the first of them. So a test can tell apart instants that lie
seconds apart, even on a machine that is late by a second.
"""

from __future__ import annotations

import asyncio
import selectors
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import anyio.to_thread
import pytest

from storage.ledger.ledger import Ledger

Result = TypeVar("Result")


class VirtualTime:
    """The clocks of a process, and the loop that advances them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._ahead, self._busy = 0.0, 0
        self.patch = monkeypatch.setattr
        self._loop: asyncio.SelectorEventLoop | None = None
        for name in ("monotonic", "perf_counter"):
            clock = getattr(time, name)
            monkeypatch.setattr(time, name, lambda clock=clock: clock() + self._ahead)
        wall = time.time_ns
        monkeypatch.setattr(time, "time_ns", lambda: wall() + round(self._ahead * 1e9))
        # Virtual time must not jump while work runs outside the event loop. So calls that run in
        # threads and calls of the ledger are counted.
        monkeypatch.setattr(anyio.to_thread, "run_sync", self._counted(anyio.to_thread.run_sync))
        for name in ("reserve", "settle", "renew", "release"):
            monkeypatch.setattr(Ledger, name, self._counted(getattr(Ledger, name)))

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Like ``asyncio.run``, on virtual time."""
        with asyncio.Runner(loop_factory=self._new_loop) as runner:
            return runner.run(work)

    def sleep(self, seconds: float) -> None:
        """``time.sleep`` for a thread that the loop has started with ``run_in_executor``."""
        assert self._loop is not None
        over = threading.Event()
        self._loop.call_soon_threadsafe(self._put_to_sleep, seconds, over)
        over.wait()

    def _put_to_sleep(self, seconds: float, over: threading.Event) -> None:
        assert self._loop is not None
        self._busy -= 1
        self._loop.call_later(seconds, self._wake, over)

    def _wake(self, over: threading.Event) -> None:
        self._busy += 1
        over.set()

    def _counted(
        self, call: Callable[..., Awaitable[Result]]
    ) -> Callable[..., Coroutine[Any, Any, Result]]:
        async def counted(*args: Any, **kwargs: Any) -> Result:
            self._busy += 1
            try:
                return await call(*args, **kwargs)
            finally:
                self._busy -= 1

        return counted

    def _new_loop(self) -> asyncio.SelectorEventLoop:
        outer = self

        class Selector(selectors.DefaultSelector):
            def select(self, timeout: float | None = None) -> Any:
                if outer._busy or timeout is None or timeout <= 0:
                    return super().select(timeout)
                events = super().select(0)
                outer._ahead += 0 if events else timeout
                return events

        class Loop(asyncio.SelectorEventLoop):
            def run_in_executor(  # type: ignore[override]
                self, executor: Any, func: Any, *args: Any
            ) -> Any:
                future = super().run_in_executor(executor, func, *args)
                outer._busy += 1
                future.add_done_callback(outer._done)
                return future

        self._loop = Loop(Selector())
        return self._loop

    def _done(self, _future: asyncio.Future[Any]) -> None:
        self._busy -= 1
