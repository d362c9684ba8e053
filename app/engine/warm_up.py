"""Loads the compiled kernels, and times the machine, before the first query, in the background.

Danger: a query that loads a kernel itself takes longer than its public cost, and misses its
deadline. So no query is accepted before all kernels are loaded: it waits some seconds for them,
and is then refused free of charge.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Iterable

import structlog

log = structlog.get_logger("privypurse.warm_up")

#: The wait in seconds before the loading of compiled kernels is tried again: after the first
#: failure, and at most. Each further failure doubles it.
FIRST, LONGEST = 1.0, 600.0
#: Seconds that a query waits for the compiled kernels at most, and seconds between two checks
#: whether they are loaded.
PATIENCE, LOOK = 10.0, 0.05


class WarmUp:
    """Runs all steps in one thread, and is ready after the last of them."""

    def __init__(self, steps: Callable[[], Iterable[object]], is_ready: Callable[[], bool]) -> None:
        """``is_ready``: true after the last step, and from the beginning if none is needed."""
        self._steps, self.is_ready = steps, is_ready
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="warm-up", daemon=True)

    def start(self) -> None:
        if not self.is_ready():
            self._thread.start()

    async def wait(self) -> bool:
        """True as soon as all steps are done, False if they are not within ``PATIENCE`` seconds."""
        last = time.monotonic() + PATIENCE
        while not self.is_ready() and time.monotonic() < last:
            await asyncio.sleep(LOOK)
        return self.is_ready()

    def close(self) -> None:
        """End the thread after its current step."""
        self._closing.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        wait = FIRST
        while not self._closing.is_set():
            try:
                for _ in self._steps():
                    if self._closing.is_set():
                        return
            except Exception as error:
                log.error(
                    "kernels or speeds are missing: queries are refused free of charge",
                    error=type(error).__qualname__,
                )
                self._closing.wait(wait)
                wait = min(LONGEST, 2 * wait)
            else:
                log.info("all kernels are loaded")
                return
