"""Admission limits: requests per key, and queries and long reads per user and in total.

A query counts until its public deadline, so a refusal for load reveals nothing about a run time.
Each process counts for itself, so limits apply per process.
"""

import math
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from limits import parse

from app.contract.errors import Busy, RateLimited, TooCostly
from app.queries.parts.cost import Cost
from app.queries.parts.query import Query


@dataclass(frozen=True)
class Limits:
    """The most public cost of one query: bytes of memory, cells of a table, seconds of work."""

    memory: int
    cells: int
    seconds: float

    def check(self, query: Query, cost: Cost, seconds: float) -> None:
        """Raises: TooCostly if the worst case of the query exceeds a limit, a public fact."""
        lower = query.lowerable()
        if cost.cells > self.cells:
            raise TooCostly(f"{cost.cells} cells", f"{self.cells} cells", lower)
        if cost.bytes > self.memory:
            raise TooCostly(f"{cost.bytes} bytes of memory", f"{self.memory} bytes", lower)
        if seconds > self.seconds:
            raise TooCostly(f"{seconds:.3g} seconds", f"{self.seconds:.3g} seconds", lower)


class InFlight:
    """Queries between their reservation and their deadline; safe between threads.

    With ``shares``, an analyst with less than an equal share of ``total`` is admitted even when the
    others have used it up, until twice ``total`` are under way. So a few analysts do not keep all
    others out.
    """

    def __init__(self, per_analyst: int, total: int, *, shares: bool = False) -> None:
        self._per_analyst, self._total, self._shares = per_analyst, total, shares
        self._counts: Counter[int] = Counter()
        self._all = 0
        self._lock = threading.Lock()

    def enter(self, analyst_id: int) -> None:
        """Count one query. Raises: RateLimited at the limit of the analyst, Busy at the total."""
        with self._lock:
            own = self._counts.get(analyst_id, 0)
            if own >= self._per_analyst:
                raise RateLimited
            analysts = len(self._counts) + (own == 0)
            has_share = self._shares and own < self._total // analysts
            if self._all >= (2 * self._total if has_share else self._total):
                raise Busy
            self._counts[analyst_id] += 1
            self._all += 1

    @property
    def total(self) -> int:
        return self._all

    def leave(self, analyst_id: int) -> None:
        with self._lock:
            self._all -= 1
            self._counts[analyst_id] -= 1
            if not self._counts[analyst_id]:
                del self._counts[analyst_id]


#: The most long reads at the same time: of one user, and of all users. Each read takes one of the
#: 40 threads of the server.
READS_PER_CALLER, READS = 2, 8


class Reads:
    """Reads whose work grows with the history of the service; safe between threads.

    Few of them run at the same time, so abandoned ones never take the threads of all others.
    """

    def __init__(self, per_caller: int = READS_PER_CALLER, total: int = READS) -> None:
        self._in_flight = InFlight(per_caller, total)

    @contextmanager
    def slot(self, caller_id: int) -> Iterator[None]:
        """Holds a slot. Raises: RateLimited at the limit of the user, Busy at the total."""
        self._in_flight.enter(caller_id)
        try:
            yield
        finally:
            self._in_flight.leave(caller_id)


class Rate:
    """Limits the requests per key in windows such as ``"180000/minute"``; None sets no limit.

    The storage of the library ``limits`` is not used, because under traffic it starts a thread
    every few milliseconds to expire windows. One window for all keys is cleared in one step.
    """

    def __init__(self, limit: str | None) -> None:
        self._limit = None if limit is None else parse(limit)
        self._counts: Counter[str] = Counter()
        self._ends = 0.0
        self._lock = threading.Lock()

    def count(self, key_id: str) -> None:
        """Count a request. Raises: RateLimited above the limit, until the window ends."""
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
