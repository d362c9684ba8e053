"""Clients that charge and settle queries of one ledger, as many at a time as there are of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import cycle

from benchmarks.ledger.accounts import ANSWER, Pair, request
from storage.ledger.ledger import Ledger, Reservation


@dataclass
class Clients:
    """As many clients of one event loop, each with one query at a time."""

    ledger: Ledger
    pairs: Sequence[Pair]
    count: int
    latencies: list[float] = field(default_factory=list)

    def __call__(self, seconds: float) -> tuple[int, float]:
        return asyncio.run(self._all(seconds))

    async def _all(self, seconds: float) -> tuple[int, float]:
        started = time.perf_counter()
        turns = cycle(self.pairs)
        ends = started + seconds
        done = await asyncio.gather(*(self._one(turns, ends) for _ in range(self.count)))
        return sum(done), time.perf_counter() - started

    async def _one(self, turns: cycle[Pair], ends: float) -> int:
        done = 0
        while (begun := time.perf_counter()) < ends:
            await settle(self.ledger, next(turns))
            self.latencies.append(time.perf_counter() - begun)
            done += 1
        return done

    def p99(self) -> float:
        """Milliseconds that one query in a hundred exceeds."""
        return sorted(self.latencies)[len(self.latencies) * 99 // 100] * 1e3


async def settle(ledger: Ledger, pair: Pair) -> None:
    """Charge and settle one query."""
    reservation = await ledger.reserve(request(pair))
    assert isinstance(reservation, Reservation)
    assert await ledger.settle(reservation, status=201, body=ANSWER, release_us=0)


def fill(ledger: Ledger, pair: Pair, queries: int, clients: int = 256) -> None:
    """Settle so many queries of a pair."""

    async def one(number: int) -> None:
        for _ in range(number, queries, clients):
            await settle(ledger, pair)

    async def every() -> None:
        await asyncio.gather(*map(one, range(clients)))

    asyncio.run(every())
