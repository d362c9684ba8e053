"""Reserving queries: the charge, before anything is opened.

Danger: what an account has left is read under its lock, FOR NO KEY UPDATE on PostgreSQL and the
write lock on SQLite, and followed from member to member. In the end one conditional UPDATE per
account charges it for all of them, and fails as a whole if a single unit does not fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import add
from typing import Any

from sqlalchemy import BigInteger, Connection, SmallInteger, Text, select

from accounting.account import AccountRank
from accounting.measures import MEASURES
from storage.database.expressions import now_us
from storage.database.failures import Again
from storage.database.statements import Each, InsertEach, driver_of, pipelined, stored_id
from storage.database.tables import budget_account, dataset, query
from storage.errors import LedgerAlarm, NoRecords, NotFound
from storage.journal.layouts import EntryKind
from storage.ledger.balances import BALANCE, MOVED, AccountBalance, Refusal, refusal_of
from storage.ledger.entries import CHARGE, ENTRIES, NOTHING, Cause
from storage.ledger.requests import QueryState, Reservation, Reserve

_a, _q = budget_account.c, query.c
_big = BigInteger()

#: Locked narrow before wide over the whole batch: two batches cannot deadlock.
ACCOUNTS = Each(
    {"rank": SmallInteger(), "dataset": _big, "analyst": _big},
    lambda each: (
        select(_a.id, _a.rank, _a.dataset_id, _a.analyst_id, _a.seq, _a.head, *BALANCE)
        .where(_a.rank == each.rank, _a.dataset_id == each.dataset, _a.analyst_id == each.analyst)
        .order_by(_a.rank, _a.id)
        .with_for_update(key_share=True, of=budget_account)
    ),
)
#: A withdrawal and a publication lock the row of the cap first, which is held when this is read.
VERSIONS = Each(
    {"dataset": _big},
    lambda each: select(dataset.c.id, dataset.c.version, now_us().label("now")).where(
        dataset.c.id == each.dataset
    ),
)
KNOWN = Each(
    {"analyst": _big, "idem_key": Text()},
    lambda each: select(_q.analyst_id, _q.idem_key).where(
        _q.analyst_id == each.analyst, _q.idem_key == each.idem_key
    ),
)
AMOUNTS = tuple(measure.column for measure in MEASURES)
NEW_QUERIES = InsertEach(
    query,
    (
        *("id", "analyst_id", "dataset_id", "dataset_version", "idem_key", "body_hash", "request"),
        *AMOUNTS,
        *("state", "attempt", "attempt_us", "lease_until", "created_us"),
    ),
    *("analyst_id", "idem_key"),
)

_RUNNING = int(QueryState.RUNNING)

Key = tuple[int, int, int]


class _Charging:
    """A locked account, and what the batch has added to it."""

    def __init__(self, row: Any) -> None:
        self.id, self.seq, self.head = row.id, row.seq, row.head
        self.balance = AccountBalance.of(row.rank, row[6:])
        self.entries: list[dict[str, Any]] = []
        self._moved = NOTHING

    def add(self, cause: Cause, query_id: Any) -> None:
        """Charge it here; ``charge`` writes it down."""
        row = cause.entry(self.id, self.seq + len(self.entries) + 1, self.head, query_id)
        self.head = row["head"]
        self.entries.append(row)
        rank, frozen, limits, sums = self.balance
        sums = tuple(map(add, sums, cause.amounts))
        self.balance = AccountBalance(rank, frozen, limits, sums)
        self._moved = tuple(map(add, self._moved, cause.amounts))

    def charge(self) -> dict[str, Any]:
        """The values of ``CHARGE`` for all that was added."""
        last = self.seq + len(self.entries)
        values = {"account": self.id, "seen": self.seq, "last": last, "linked": self.head}
        return values | dict(zip(MOVED, self._moved, strict=True))


class _Batch:
    """The reserves of one transaction, and everything they share."""

    def __init__(
        self,
        accounts: Iterable[Any],
        versions: Iterable[Any],
        keys: Iterable[Any],
        lease_us: int,
    ) -> None:
        self.accounts: dict[Key, _Charging] = {}
        for row in accounts:
            self.accounts.setdefault((row.rank, row.dataset_id, row.analyst_id), _Charging(row))
        self.queries: list[dict[str, Any]] = []
        self._versions = {row.id: row for row in versions}
        self._keys = {tuple(row) for row in keys}
        self._lease_us = lease_us

    def reserve(self, request: Reserve, query_id: Any) -> Reservation | Refusal | None:
        """Reserves a new query; None when its key is known already.

        Returns a refusal instead of raising it: BudgetExhausted, CapExhausted, AccountFrozen;
        NoRecords when the dataset was withdrawn; NotFound when there is no account.
        """
        key = (request.analyst_id, request.stored_key)
        if key in self._keys:
            return None
        own, overall, cap = map(self.accounts.get, _keys(request))
        if own is None or cap is None:
            return NotFound("the analyst has no account for this dataset")
        accounts = [own, cap] if overall is None else [own, overall, cap]
        refusal = refusal_of([account.balance for account in accounts], request.charge)
        if refusal is not None:
            return refusal
        _, version, at_us = self._versions[request.dataset_id]
        if version == 0:
            return NoRecords("the dataset has no records to query")
        self._keys.add(key)
        self.queries.append(self._row(request, version, at_us, query_id))
        cause = Cause(
            EntryKind.CHARGE,
            request.analyst_id,
            at_us,
            request.charge.amounts,
            request.query_id,
            request.subject,
        )
        for account in accounts:
            account.add(cause, query_id)
        return Reservation(request.query_id, 1, version, at_us, own.head, own.balance.remaining)

    def _row(self, request: Reserve, version: int, at_us: int, query_id: Any) -> dict[str, Any]:
        return {
            "id": query_id,
            "analyst_id": request.analyst_id,
            "dataset_id": request.dataset_id,
            "dataset_version": version,
            "idem_key": request.stored_key,
            "body_hash": request.body_hash,
            "request": request.request,
            **dict(zip(AMOUNTS, request.charge.amounts, strict=True)),
            "state": _RUNNING,
            "attempt": 1,
            "attempt_us": at_us,
            "lease_until": at_us + self._lease_us,
            "created_us": at_us,
        }


def reserve_all(
    connection: Connection, requests: Sequence[Reserve], lease_us: int
) -> list[Reservation | Refusal | None]:
    """Reserves every new query that fits, in their order; None for a key that is known.

    Raises: LedgerAlarm when the guard refuses what was found to fit; Again when another process
    has taken a key in between.
    """
    driver, dialect = driver_of(connection), connection.dialect
    keys = sorted({key for request in requests for key in _keys(request)})
    with pipelined(connection):
        accounts = ACCOUNTS.of_each(
            driver,
            dialect,
            [{"rank": rank, "dataset": data, "analyst": who} for rank, data, who in keys],
        )
        versions = VERSIONS.of_each(
            driver, dialect, [{"dataset": id} for id in {one.dataset_id for one in requests}]
        )
        existing = KNOWN.of_each(
            driver,
            dialect,
            [
                {"analyst": one.analyst_id, "idem_key": one.key}
                for one in requests
                if one.key is not None
            ],
        )
    batch = _Batch(accounts(), versions(), existing(), lease_us)
    outcomes = [batch.reserve(one, stored_id(one.query_id, dialect)) for one in requests]
    charged = [account for account in batch.accounts.values() if account.entries]
    # Sorted by key: concurrent batches insert in one order and cannot deadlock.
    rows = sorted(batch.queries, key=lambda row: (row["analyst_id"], row["idem_key"]))
    with pipelined(connection):
        inserted = NEW_QUERIES.insert(driver, dialect, rows)
        changed = CHARGE.of_each(driver, dialect, [account.charge() for account in charged])
        ENTRIES.insert(driver, dialect, [row for account in charged for row in account.entries])
    if inserted() != len(rows):
        raise Again
    if len(changed()) != len(charged):
        raise LedgerAlarm("a guard refused what fits")
    return outcomes


def _keys(request: Reserve) -> tuple[Key, Key, Key]:
    """The accounts that a query is charged to, in lock order; the second is optional."""
    return (
        (int(AccountRank.ANALYST_ON_DATASET), request.dataset_id, request.analyst_id),
        (int(AccountRank.ANALYST), 0, request.analyst_id),
        (int(AccountRank.DATASET), request.dataset_id, 0),
    )
