"""Where queries begin: so many at once, each in a place that is free again at an instant.

When a query begins shows: from then on it cannot be cancelled, and its own instants follow. So a
place passes to the next query not when the work in it ends, which may depend on records, but at
the first of beginning + interval · 2^j behind that. Who begins when follows from instants alone.
"""

import asyncio
import time
from collections import deque

from app.engine.deadlines import release_after


class Places:
    """The places of one process, for its event loop alone; who waits longest begins first."""

    def __init__(self, count: int, interval: float) -> None:
        self._idle, self._interval = count, interval
        self._waiting: deque[asyncio.Future[float]] = deque()

    def enter(self, now: float) -> asyncio.Future[float]:
        """When a query that comes ``now`` begins, on the monotonic clock, once that is settled.

        Cancelling it gives up waiting: that succeeds as long as the query has not begun.
        """
        begun: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        if self._idle:
            self._idle -= 1
            begun.set_result(now)
        else:
            self._waiting.append(begun)
        return begun

    def leave(self, begun: float) -> float:
        """The work that began then is over; returns the instant from which its place is free."""
        now = time.monotonic()
        instant = begun + release_after(now - begun, self._interval)
        if instant <= now:
            self._pass_on(instant)
        else:
            asyncio.get_running_loop().call_later(instant - now, self._pass_on, instant)
        return instant

    def _pass_on(self, instant: float) -> None:
        while self._waiting:
            begun = self._waiting.popleft()
            if not begun.cancelled():
                # The instant itself, not the moment at which the event loop came to it.
                begun.set_result(instant)
                return
        self._idle += 1
