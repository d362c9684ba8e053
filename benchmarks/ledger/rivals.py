"""The ledger's own transactions with nothing around them: no queue, no event loop, no waiting."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

from sqlalchemy import Connection

from benchmarks.ledger.accounts import ANSWER, Pair, hot_account, many_accounts, opened, request
from storage.database.database import Database
from storage.ledger.charging import reserve_all
from storage.ledger.ledger import LEASE_US
from storage.ledger.requests import Reservation, Reserve, Settle
from storage.ledger.settling import settle


class Rival:
    """Threads that each charge and settle queries in transactions of their own."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._pairs = {"hot": [hot_account(database)]}

    @classmethod
    @contextmanager
    def opened(cls, url: str, folder: Path) -> Iterator[Rival]:
        with opened(url, folder) as (database, _):
            yield cls(database)

    def rate(self, accounts: str, group: int, threads: int, seconds: float) -> float:
        """Pairs per second: ``group`` reserves per commit, then as many settles per commit."""
        if accounts not in self._pairs:
            self._pairs["many"] = many_accounts(self._database, 1000)
        pairs, started = cycle(self._pairs[accounts]), time.perf_counter()

        def client(_: int) -> int:
            count = 0
            while time.perf_counter() - started < seconds:
                self._charge_and_settle([next(pairs) for _ in range(group)])
                count += group
            return count

        with ThreadPoolExecutor(threads) as pool:
            done = sum(pool.map(client, range(threads)))
        return done / (time.perf_counter() - started)

    def _charge_and_settle(self, pairs: list[Pair]) -> None:
        requests = [request(pair) for pair in pairs]
        settles = [Settle(one.query_id, 1, 201, ANSWER, 0) for one in requests]
        self._database.write(lambda connection: _charge(connection, requests))
        settled = self._database.write(lambda connection: settle(connection, settles)())
        assert all(outcome is True for outcome in settled)


def _charge(connection: Connection, requests: list[Reserve]) -> None:
    outcomes, write = reserve_all(connection, requests, LEASE_US)()
    assert all(isinstance(outcome, Reservation) for outcome in outcomes)
    write()()
