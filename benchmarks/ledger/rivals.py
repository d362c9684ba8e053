"""The bare drivers that the ledger is measured against: its own statements, nothing around them."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from hashlib import sha256
from importlib import import_module
from itertools import cycle
from os import urandom
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import psycopg
from sqlalchemy.dialects import sqlite as sqlite_dialect

from benchmarks.ledger import accounts
from benchmarks.ledger.accounts import ANSWER, BODY_HASH, REQUEST, Pair
from storage.database.database import Database
from storage.database.sqlite import clock_us
from storage.database.statements import driver_of
from storage.journal.layouts import next_head
from storage.ledger.charging import NEW_QUERIES
from storage.ledger.entries import CHARGE, ENTRIES
from storage.ledger.settling import SETTLE as SETTLE_SQLITE
from storage.ledger.settling import SETTLEMENTS

#: The function that charged on PostgreSQL up to schema 0006, as its migration made it.
FUNCTION = import_module("storage.migrations.versions.0002_reserve_function").RESERVE
RESERVE = """
SELECT outcome, at_us, current_version, head, limit_eps, limit_delta, spent_eps, spent_delta
  FROM reserve_queries(
       %(ids)b::uuid[], %(analysts)b::bigint[], %(datasets)b::bigint[], %(versions)b::int[],
       %(keys)b::text[], %(hashes)b::bytea[], %(requests)b::bytea[], %(subjects)b::bytea[],
       %(eps)b::bigint[], %(deltas)b::bigint[], %(lease)b::bigint)
"""
SETTLE = """
WITH asked AS (
    SELECT * FROM unnest(%(ids)b::uuid[], %(attempts)b::int[], %(bodies)b::bytea[],
                         %(hashes)b::bytea[], %(statuses)b::smallint[], %(releases)b::bigint[])
               AS t (id, attempt, body, hash, status, release_us)),
done AS (
    UPDATE query SET state = 1, answer = asked.body, answer_hash = asked.hash,
           answer_status = asked.status, release_us = asked.release_us,
           settled_us = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
      FROM asked
     WHERE query.id = asked.id AND query.state = 0 AND query.attempt = asked.attempt
    RETURNING query.id, query.attempt, query.answer_hash, query.settled_us, query.dataset_version,
              query.answer_status, query.release_us, query.attempt_us, query.lease_until)
INSERT INTO settlement (query_id, attempt, answer_hash, at_us, digest)
SELECT id, attempt, answer_hash, settled_us, sha256(
           -- storage.journal.layouts, byte for byte
           '\\x00000013'::bytea || 'privypurse ending 2'::bytea
           || '\\x00000010'::bytea || uuid_send(id)
           || '\\x00000008'::bytea || int8send(attempt)
           || '\\x00000008'::bytea || int8send(dataset_version)
           || '\\x00000008'::bytea || int8send(answer_status)
           || '\\x00000020'::bytea || answer_hash
           || '\\x00000008'::bytea || int8send(settled_us)
           || '\\x00000008'::bytea || int8send(release_us)
           || '\\x00000008'::bytea || int8send(attempt_us)
           || '\\x00000008'::bytea || int8send(lease_until))
  FROM done
RETURNING query_id
"""

ANSWER_HASH = sha256(ANSWER).digest()


class SqliteRival:
    """One thread of ``sqlite3`` that charges and settles queries in groups."""

    def __init__(self, path: Path, folder: Path) -> None:
        with accounts.opened(f"sqlite:///{path}", folder) as (database, _):
            self._pair = accounts.hot_account(database)
        # A second engine: the connection must have the functions that the statements call.
        self._database = Database.open(f"sqlite:///{path}", folder)
        self._connection = self._database.engine.connect()
        self._driver = driver_of(self._connection)
        ids = self._driver.execute("SELECT id FROM budget_account ORDER BY rank").fetchall()
        self._accounts = [id for (id,) in ids]
        self._dialect = sqlite_dialect.dialect(paramstyle="qmark")
        self._charge, self._settle = (
            one.compiled(self._dialect) for one in (CHARGE, SETTLE_SQLITE)
        )

    def rate(self, group: int, seconds: float) -> float:
        """Pairs a second: ``group`` reserves a commit, then as many settles a commit."""
        execute = self._driver.execute
        started = time.perf_counter()
        done = 0
        while time.perf_counter() - started < seconds:
            execute("BEGIN IMMEDIATE")
            rows = [self._new_query() for _ in range(group)]
            NEW_QUERIES.insert(self._connection, rows)
            ids = [row["id"] for row in rows]
            self._charge_all(execute, ids)
            execute("COMMIT")
            execute("BEGIN IMMEDIATE")
            settlements = [self._settle_one(execute, id) for id in ids]
            SETTLEMENTS.insert(self._connection, settlements)
            execute("COMMIT")
            done += group
        return done / (time.perf_counter() - started)

    def close(self) -> None:
        self._connection.close()
        self._database.close()

    def _new_query(self) -> dict[str, Any]:
        id, at_us = uuid4().bytes, clock_us()
        analyst, dataset = self._pair
        return {
            "id": id,
            "analyst_id": analyst,
            "dataset_id": dataset,
            "dataset_version": 1,
            "idem_key": id.hex(),
            "body_hash": BODY_HASH,
            "request": REQUEST,
            "eps_n": 1,
            "delta_a": 0,
            "state": 0,
            "attempt": 1,
            "attempt_us": at_us,
            "lease_until": at_us,
            "created_us": at_us,
        }

    def _charge_all(self, execute: Any, ids: Sequence[bytes]) -> None:
        """One update an account for all of the group, and an entry a query."""
        at_us, read = clock_us(), "SELECT seq, head FROM budget_account WHERE id = ?"
        for account in self._accounts:
            ((seq, head),) = execute(read, [account]).fetchall()
            rows = []
            for after, id in enumerate(ids, start=seq + 1):
                digest = urandom(32)
                head = next_head(head, digest)
                rows.append(
                    {
                        "account_id": account,
                        "seq": after,
                        "kind": 1,
                        "query_id": id,
                        "actor": self._pair[0],
                        "d_eps_n": 1,
                        "d_delta_a": 0,
                        "at_us": at_us,
                        "digest": digest,
                        "head": head,
                        "subject": digest,
                    }
                )
            sql, arguments = self._charge
            moved = {
                "id": account,
                "seq": seq,
                "last": seq + len(rows),
                "head": head,
                "d_eps_n": len(rows),
                "d_delta_a": 0,
            }
            assert execute(sql, arguments(moved)).fetchall()
            ENTRIES.insert(self._connection, rows)

    def _settle_one(self, execute: Any, id: bytes) -> dict[str, Any]:
        sql, arguments = self._settle
        asked = {
            "number": 0,
            "id": id,
            "attempt": 1,
            "lapsed_at": None,
            "answer": ANSWER,
            "answer_hash": ANSWER_HASH,
            "answer_status": 201,
            "release_us": 0,
        }
        at_us = execute(sql, arguments(asked)).fetchall()[0][1]
        return {
            "query_id": id,
            "attempt": 1,
            "answer_hash": ANSWER_HASH,
            "at_us": at_us,
            "digest": ANSWER_HASH,
        }


class PostgresRival:
    """As many threads as clients, each with a connection in autocommit."""

    def __init__(self, url: str, clients: int) -> None:
        with TemporaryDirectory() as name, accounts.opened(url, Path(name)) as (database, _):
            self._pairs = {
                "hot": [accounts.hot_account(database)],
                "many": accounts.many_accounts(database, 1000),
            }
        plain = url.replace("postgresql+psycopg", "postgresql")
        self._plain = plain
        with psycopg.connect(plain) as connection:
            connection.execute(FUNCTION)
        self._connections = [psycopg.connect(plain, autocommit=True) for _ in range(clients)]

    def rate(self, on: str, seconds: float) -> float:
        """Pairs a second: one statement a reserve, one a settle."""
        done: list[int] = []
        turns = cycle(self._pairs[on])
        started = time.perf_counter()
        threads = [
            threading.Thread(target=self._one, args=(c, turns, started + seconds, done))
            for c in self._connections
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(done) / (time.perf_counter() - started)

    def close(self) -> None:
        for connection in self._connections:
            connection.close()
        with psycopg.connect(self._plain) as connection:
            connection.execute("DROP FUNCTION reserve_queries")

    def _one(self, connection: Any, turns: cycle[Pair], ends: float, done: list[int]) -> None:
        count = 0
        while time.perf_counter() < ends:
            analyst, dataset = next(turns)
            id, digest = uuid4(), urandom(32)
            columns = {
                "ids": [id],
                "analysts": [analyst],
                "datasets": [dataset],
                "versions": [1],
                "keys": [id.hex],
                "hashes": [BODY_HASH],
                "requests": [REQUEST],
                "subjects": [digest],
                "eps": [1],
                "deltas": [0],
                "lease": 60_000_000,
            }
            (row,) = connection.execute(RESERVE, columns).fetchall()
            assert row[0] == 0, "charged"
            columns = {
                "ids": [id],
                "attempts": [1],
                "bodies": [ANSWER],
                "hashes": [ANSWER_HASH],
                "statuses": [201],
                "releases": [0],
            }
            assert connection.execute(SETTLE, columns).fetchall()
            count += 1
        done.append(count)
