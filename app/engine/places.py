"""The bounded number of places in which queries run; each becomes free at a public instant.

The moment at which a query begins is visible, because it then can no longer be cancelled. The end
of the work before it may depend on records. So the next query gets a place at the first instant
beginning + interval · 2^j, j = 0, 1, …, after that end. Every beginning is thus a public instant.
"""

import asyncio
import time
from collections import deque

from app.engine.deadlines import release_after


class Places:
    """The places of one process, first come, first served. Only its event loop may call this."""

    def __init__(self, count: int, interval: float) -> None:
        self._idle, self._interval = count, interval
        self._waiting: deque[asyncio.Future[float]] = deque()

    def enter(self, now: float) -> asyncio.Future[float]:
        """Returns a future of the monotonic time at which a query that arrives ``now`` begins.

        Cancelling the future ends the wait. It succeeds as long as the query has not begun.
        """
        begun: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        if self._idle:
            self._idle -= 1
            begun.set_result(now)
        else:
            self._waiting.append(begun)
        return begun

    def leave(self, begun: float) -> float:
        """Give up the place of work that began at ``begun``; returns when the place is free."""
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
                # The query begins at the exact instant, not when the event loop runs this method.
                begun.set_result(instant)
                return
        self._idle += 1
