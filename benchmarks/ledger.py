"""How many queries a second the ledger charges and settles, beside the bare drivers.

A *pair* is the reserve and the settle of one query: one hot account and two caps. On SQLite the
rivals run the very same statements in one thread of ``sqlite3``: in groups as large as ours, and
one commit a reserve and a settle. On PostgreSQL the rival calls the same function, one statement
an autocommit, from as many connections as there are clients; there also on 1,000 accounts.
Rounds are interleaved, and the median of five ratios counts; status 1 when one is too small.

    python -m benchmarks.ledger [--folder DIR] [--rounds N] [--seconds S]
    FSYNC=on scripts/with_postgres.sh python -m benchmarks.ledger
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks import accounts
from benchmarks.accounts import ANSWER, Pair, request
from benchmarks.rivals import PostgresRival, SqliteRival
from storage.ledger.ledger import Ledger, Reservation

CLIENTS, MANY = 32, 256
#: The share of the rival's speed that is asked for.
GROUP, SERIAL, SERIAL_MANY, HOT, SPREAD = 0.5, 3.0, 5.0, 2.0, 0.6
#: Below this many seconds a disk is as fast as memory, and waiting together gains nothing.
SLOW_DISK = 0.0003


@dataclass
class Rounds:
    """Pairs a second of several ways, round by round, and what one owes another."""

    seconds: float
    rates: dict[str, list[float]] = field(default_factory=dict)
    failed: bool = False

    def run(self, name: str, way: Callable[[float], tuple[int, float]]) -> None:
        pairs, seconds = way(self.seconds)
        self.rates.setdefault(name, []).append(pairs / seconds)

    def show(self) -> None:
        for name, rates in self.rates.items():
            print(f"{name:52}{median(rates):10.0f} pairs/s")

    def owe(self, name: str, rival: str, least: float | None) -> None:
        ratio = median(a / b for a, b in zip(self.rates[name], self.rates[rival], strict=True))
        holds = least is None or ratio >= least
        self.failed |= not holds
        asked = "" if least is None else f"≥ {least:g}  {'holds' if holds else 'FAILS'}"
        print(f"  {name} / {rival}".ljust(60) + f"{ratio:6.2f}  {asked}", flush=True)


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
            held = await self.ledger.reserve_async(request(next(turns)))
            assert isinstance(held, Reservation)
            assert await self.ledger.settle_async(held, status=201, body=ANSWER, release_us=0)
            self.latencies.append(time.perf_counter() - begun)
            done += 1
        return done

    def p99(self) -> float:
        """Milliseconds that one query in a hundred exceeds."""
        return sorted(self.latencies)[len(self.latencies) * 99 // 100] * 1e3


def on_sqlite(options: Namespace) -> bool:
    with TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        disk = fsync_seconds(folder)
        print(f"SQLite, synchronous=FULL; one fsync takes {disk * 1e3:.2f} ms")
        rounds = Rounds(options.seconds)
        with accounts.opened(f"sqlite:///{folder}/ours.db", folder) as (database, ledger):
            pairs = [accounts.hot_account(database)]
            few, many = Clients(ledger, pairs, CLIENTS), Clients(ledger, pairs, MANY)
            rival = SqliteRival(folder / "raw.db", folder)
            for _ in range(options.rounds):
                rounds.run("raw, groups of 32", partial(rival.run, CLIENTS))
                rounds.run("ledger, 32 clients", few)
                rounds.run("raw, one by one", partial(rival.run, 1))
                rounds.run("ledger, 256 clients", many)
            rival.close()
        rounds.show()
        slow = disk >= SLOW_DISK
        rounds.owe("ledger, 32 clients", "raw, groups of 32", GROUP)
        rounds.owe("ledger, 32 clients", "raw, one by one", SERIAL if slow else None)
        rounds.owe("ledger, 256 clients", "raw, one by one", SERIAL_MANY if slow else None)
        print(f"  p99: {few.p99():.1f} ms of 32 clients, {many.p99():.1f} ms of 256")
        return rounds.failed


def on_postgresql(url: str, options: Namespace) -> bool:
    with TemporaryDirectory() as name, accounts.opened(url, Path(name)) as (database, ledger):
        with database.read() as connection:
            fsync = connection.exec_driver_sql("SHOW fsync").scalar_one()
        print(f"PostgreSQL, fsync {fsync}")
        hot, spread = [accounts.hot_account(database)], accounts.many_accounts(database, 1000)
        rounds = Rounds(options.seconds)
        ours = {"hot": Clients(ledger, hot, CLIENTS), "1,000": Clients(ledger, spread, CLIENTS)}
        rival = PostgresRival(url, CLIENTS)
        for _ in range(options.rounds):
            for where, pairs in (("hot", hot), ("1,000", spread)):
                rounds.run(f"psycopg autocommit, {where}", partial(rival.run, pairs))
                rounds.run(f"ledger, {where}", ours[where])
        rival.close()
        rounds.show()
        rounds.owe("ledger, hot", "psycopg autocommit, hot", HOT if fsync == "on" else None)
        rounds.owe("ledger, 1,000", "psycopg autocommit, 1,000", SPREAD if fsync == "on" else None)
        print(f"  p99: {ours['hot'].p99():.1f} ms hot, {ours['1,000'].p99():.1f} ms on 1,000")
        return rounds.failed


def fsync_seconds(folder: Path) -> float:
    """The median time one fsync of 4 KB takes where the database will lie."""
    times = []
    with (folder / "probe").open("wb") as file:
        for _ in range(50):
            file.write(bytes(4096))
            file.flush()
            begun = time.perf_counter()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - begun)
    return median(times)


def main() -> int:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="where the SQLite files lie")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    options = parser.parse_args()
    url = os.environ.get("DATABASE_URL", "")
    failed = on_postgresql(url, options) if url.startswith("postgres") else on_sqlite(options)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
