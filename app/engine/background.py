"""Periodic work in a thread of its own, until it is closed."""

import threading
from collections.abc import Callable

import structlog

log = structlog.get_logger("privypurse.background")


class Repeated:
    """Runs ``work`` every ``seconds`` and on ``wake``; a failed run is logged and repeated."""

    def __init__(self, name: str, seconds: float, work: Callable[[], object]) -> None:
        self._name, self._seconds, self._work = name, seconds, work
        self._wake, self._closing = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Run the work now, or directly after the current run."""
        self._wake.set()

    def close(self) -> None:
        """Run the work a last time, then end the thread."""
        self._closing.set()
        self._wake.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closing.is_set():
            self._wake.wait(self._seconds)
            self._wake.clear()
            try:
                self._work()
            except Exception as error:
                log.error("background work failed", work=self._name, error=type(error).__qualname__)
