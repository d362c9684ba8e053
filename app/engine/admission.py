"""How much is let in: requests of one key, queries of one analyst, queries of all.

A query counts until its release instant, so what is refused for its sake tells no more of its run
time than the clock does. Counted in this process: several processes admit as much each.
"""

import math
import threading
import time
from collections import Counter

from limits import parse

from app.contract.errors import Busy, RateLimited


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
    """Requests of each key in windows such as ``"180000/minute"``; None: no limit.

    Counted here: the memory of ``limits`` starts a thread every few milliseconds of traffic, to
    forget windows that are over. One window for all keys is forgotten at once.
    """

    def __init__(self, limit: str | None) -> None:
        self._limit = None if limit is None else parse(limit)
        self._counts: Counter[str] = Counter()
        self._ends = 0.0
        self._lock = threading.Lock()

    def count(self, key_id: str) -> None:
        """Note a request. Raises: RateLimited until the window is over."""
        if self._limit is None:
            return
        now = time.monotonic()
        with self._lock:
            if now >= self._ends:
                self._counts.clear()
                self._ends = now + self._limit.get_expiry()
            self._counts[key_id] += 1
            if self._counts[key_id] > self._limit.amount:
                raise RateLimited(max(1, math.ceil(self._ends - now)))
