"""How much is let in: requests of one key, queries of one analyst, queries of all.

A query counts until its release instant, so what is refused for its sake tells no more of its run
time than the clock does. Counted in this process: several processes admit as much each.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter

from limits import parse
from limits.storage import MemoryStorage
from limits.strategies import FixedWindowRateLimiter

from app.errors import Busy, RateLimited


class InFlight:
    """Queries between their reservation and their release instant; safe between threads."""

    def __init__(self, per_analyst: int, total: int) -> None:
        self._per_analyst, self._total = per_analyst, total
        self._counts: Counter[int] = Counter()
        self._all = 0
        self._lock = threading.Lock()

    def enter(self, analyst_id: int) -> None:
        """Take a place. Raises: RateLimited when the analyst has all theirs, Busy when all are."""
        with self._lock:
            if self._counts[analyst_id] >= self._per_analyst:
                raise RateLimited
            if self._all >= self._total:
                raise Busy
            self._counts[analyst_id] += 1
            self._all += 1

    def leave(self, analyst_id: int) -> None:
        with self._lock:
            self._all -= 1
            self._counts[analyst_id] -= 1
            if not self._counts[analyst_id]:
                del self._counts[analyst_id]


class Rate:
    """Requests of each key in windows such as ``"180000/minute"``; None: no limit."""

    def __init__(self, limit: str | None) -> None:
        self._limit = None if limit is None else parse(limit)
        self._limiter = FixedWindowRateLimiter(MemoryStorage())

    def count(self, key_id: str) -> None:
        """Note a request. Raises: RateLimited until the window of its key is over."""
        if self._limit is not None and not self._limiter.hit(self._limit, key_id):
            reset = self._limiter.get_window_stats(self._limit, key_id).reset_time
            raise RateLimited(max(1, math.ceil(reset - time.time())))
