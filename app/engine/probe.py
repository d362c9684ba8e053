"""A check of the service for probes, which answers while all other threads are at work."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

Result = TypeVar("Result")


class Probe(Generic[Result]):
    """Runs a check in a thread of its own, once for all callers that wait at the same time.

    A flood of probes is thus one check at a time. Only the event loop may call this.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="probe")
        self._check: asyncio.Future[Result] | None = None

    async def run(self, check: Callable[[], Result]) -> Result:
        """The result of ``check``, or of a check that is running already."""
        if self._check is None or self._check.done():
            self._check = asyncio.get_running_loop().run_in_executor(self._thread, check)
        # Several callers may wait for one check. It is shielded, because a cancelled caller must
        # not cancel it for the others.
        return await asyncio.shield(self._check)

    def close(self) -> None:
        self._thread.shutdown()
