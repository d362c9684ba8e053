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

    def __init__(self, count: int, interval: float, memory: int = 0) -> None:
        self._idle, self._interval, self._memory = count, interval, memory
        self._waiting: deque[tuple[asyncio.Future[float], int]] = deque()

    def enter(self, now: float, bytes: int = 0) -> asyncio.Future[float]:
        """Returns a future of the monotonic time at which a query that arrives ``now`` begins.

        ``bytes``: the public memory of its work, at most the memory of all places. Cancelling the
        future ends the wait. It succeeds as long as the query has not begun.
        """
        begun: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._waiting.append((begun, bytes))
        self._admit(now)
        return begun

    def leave(self, begun: float, bytes: int = 0) -> float:
        """Give up the place of work that began at ``begun``; returns when the place is free."""
        now = time.monotonic()
        instant = begun + release_after(now - begun, self._interval)
        if instant <= now:
            self._pass_on(instant, bytes)
        else:
            asyncio.get_running_loop().call_later(instant - now, self._pass_on, instant, bytes)
        return instant

    def _pass_on(self, instant: float, bytes: int) -> None:
        self._idle += 1
        self._memory += bytes
        # A query begins at the exact instant, not when the event loop runs this method.
        self._admit(instant)

    def _admit(self, instant: float) -> None:
        """Let queries begin in the order of their arrival, as far as places and memory go."""
        while self._waiting and self._idle:
            begun, bytes = self._waiting[0]
            if not begun.cancelled():
                if bytes > self._memory:
                    return  # the next one must not overtake it
                self._idle -= 1
                self._memory -= bytes
                begun.set_result(instant)
            self._waiting.popleft()
