"""The contents of a ledger in memory: each one has a number and can be restored.

Contents that differ only in names, times and hashes count as the same, because no rule reads
those. The invariants are checked once for each content, when it first occurs.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

from storage.errors import KeyReused
from storage.ledger.ledger import Replay, Reserve
from tests.support.blocking import BlockingLedger
from tests.support.memory import copied, driver, put_back
from tests.support.stepping import SteppedDatabase
from tests.support.world import BODY_HASH, check_invariants

OTHER_HASH = bytes(32)
#: The search through all orders of steps lets only the leases of the first two attempts of a query
#: expire. The number of attempts has no limit, so the search would not end otherwise.
LAPSES = 2
_QUERIES = "SELECT idem_key, state, attempt, lease_until > now_us(), answer, answer_status"
_CONTENT = (
    f"{_QUERIES} FROM query ORDER BY idem_key",
    "SELECT rank, charged_eps_n, charged_rho_f, charged_unpriced, lim_eps_n, frozen "
    "FROM budget_account ORDER BY id",
    "SELECT account_id, kind, idem_key, d_eps_n + d_rho_f FROM entry "
    "LEFT JOIN query ON id = query_id "
    "ORDER BY account_id, idem_key, kind",
    "SELECT idem_key, j.kind, json_extract(j.fact, '$.attempt'), answer_hash FROM journal j "
    "JOIN query ON id = subject ORDER BY idem_key, j.kind, 3",
)


class Contents:
    """``requests``: the request of each key. ``ids``: the id of each stored query, by key.

    ``rows``: by number, the rows of queries, accounts, entries and facts.
    """

    def __init__(
        self, database: SteppedDatabase, ledger: BlockingLedger, requests: Mapping[str, Reserve]
    ) -> None:
        self._driver = driver(database.engine)
        self._database, self._ledger, self._requests = database, ledger, requests
        self.ids: dict[str, UUID] = {}
        self.rows: list[tuple[tuple[tuple[Any, ...], ...], ...]] = []
        self._copies: list[sqlite3.Connection] = []
        self._streams: list[Any] = []
        self._numbers: dict[Any, int] = {}
        self._lapses: dict[int, list[tuple[str, int]]] = {}

    def put_back(self, number: int) -> None:
        self._restore(number)
        self.ids.clear()
        for key, id in self._driver.execute("SELECT idem_key, id FROM query"):
            self.ids[key] = UUID(bytes=id)

    def now(self) -> int:
        """Returns the number of the current contents of the database."""
        rows = tuple(tuple(map(tuple, self._driver.execute(sql))) for sql in _CONTENT)
        number = self._numbers.get(rows)
        if number is None:
            number = self._numbers[rows] = len(self.rows)
            self._copies.append(copied(self._driver))
            self._streams.append(self._database.stream)
            self.rows.append(rows)
            self._check(number)
        return number

    def lapsed(self, number: int) -> list[tuple[str, int]]:
        """The contents after each lease that can expire now; its holder may still be running."""
        lapses = self._lapses.get(number)
        if lapses is None:
            lapses = self._lapses[number] = []
            for key, state, attempt, alive, *_ in self.rows[number][0]:
                if state == 0 and alive and attempt <= LAPSES:
                    self.put_back(number)
                    lapse = "UPDATE query SET lease_until = 0 WHERE idem_key = ?"
                    self._driver.execute(lapse, (key,))
                    lapses.append((f"lapse {key}", self.now()))
        return lapses

    def _check(self, number: int) -> None:
        """Checks I1, I2, chains and answers, then I5 and I6 by sending each request again."""
        with self._database.whole():
            check_invariants(self._database)
            for key, state, _, _, answer, status in self.rows[number][0]:
                if state == 1:
                    outcome = self._ledger.reserve(self._once_more(key))
                    assert isinstance(outcome, Replay), "I5: what is settled is replayed"
                    assert (outcome.status, outcome.body) == (status, answer), "I5"
                try:
                    self._ledger.reserve(self._once_more(key, OTHER_HASH))
                except KeyReused:
                    pass
                else:
                    raise AssertionError("I6: another body under the key was accepted")
                assert self.now() == number, "I5, I6: nothing changes"
        self._restore(number)

    def _restore(self, number: int) -> None:
        put_back(self._driver, self._copies[number])
        self._database.stream = self._streams[number]

    def _once_more(self, key: str, body_hash: bytes = BODY_HASH) -> Reserve:
        return replace(self._requests[key], query_id=uuid4(), body_hash=body_hash)
