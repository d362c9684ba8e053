"""What a key that was seen before stands for: a stored reply, a running query, or a lapsed one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, and_, bindparam, select, update

from accounting.account import AccountRank
from storage.database.database import Database
from storage.database.expressions import now_us
from storage.database.statements import Hot, read_id
from storage.database.tables import budget_account, entry, query
from storage.errors import KeyReused, LedgerAlarm, QueryReleased, StillRunning
from storage.journal.layouts import EntryKind
from storage.ledger.balances import BALANCE, AccountBalance
from storage.ledger.requests import QueryState, Replay, Reservation, Settle
from storage.ledger.settling import settle

#: A request that outlived this many attempts kills its process: it is answered by a failure.
MAX_ATTEMPTS = 3
FAILED = 500

_q, _a, _e = query.c, budget_account.c, entry.c

#: What ``judge`` needs to know, under names that are free in a row of other tables.
COLUMNS = (
    _q.id.label("query_id"),
    _q.body_hash,
    _q.state.label("query_state"),
    _q.attempt,
    _q.lease_until.label("query_lease_until"),
    _q.dataset_version,
    _q.answer,
    _q.answer_status,
    _q.release_us,
)
HAS_KEY = and_(_q.analyst_id == bindparam("analyst"), _q.idem_key == bindparam("key"))
BY_KEY = select(*COLUMNS, now_us().label("now")).where(HAS_KEY)

_LOOK_UP = Hot(BY_KEY)

_TAKE_OVER = (
    update(query)
    .where(
        _q.id == bindparam("query"),
        _q.state == int(QueryState.RUNNING),
        _q.attempt == bindparam("seen"),
        _q.lease_until <= bindparam("now"),
    )
    .values(attempt=_q.attempt + 1, attempt_us=bindparam("now"), lease_until=bindparam("until"))
    .returning(_q.attempt)
)
_RECEIPT = (
    select(_e.head, *BALANCE)
    .join_from(entry, budget_account, _e.account_id == _a.id)
    .where(
        _e.query_id == bindparam("query"),
        _e.kind == int(EntryKind.CHARGE),
        _a.rank == int(AccountRank.ANALYST_ON_DATASET),
    )
)


@dataclass(frozen=True, slots=True)
class Lapsed:
    """A query whose holder has gone silent: anybody with the key may take it over."""

    query_id: UUID
    attempt: int
    version: int
    now: int


def look_up(
    database: Database, analyst_id: int, key: str, body_hash: bytes
) -> Replay | Lapsed | None:
    """``find`` without a transaction: every request with a key begins with it."""
    rows = database.look_up(_LOOK_UP, analyst=analyst_id, key=key)
    return judge(rows[0], body_hash) if rows else None


def find(
    connection: Connection, analyst_id: int, key: str, body_hash: bytes
) -> Replay | Lapsed | None:
    """The reply stored under a key; None when the key is new.

    Raises: KeyReused, QueryReleased, and StillRunning also for an answer whose release instant
    lies ahead: until then nobody may learn that the work is done.
    """
    row = connection.execute(BY_KEY, {"analyst": analyst_id, "key": key}).one_or_none()
    return None if row is None else judge(row, body_hash)


def judge(row: Any, body_hash: bytes) -> Replay | Lapsed:
    """What a row of ``COLUMNS`` with a query in it stands for; raises what ``find`` raises."""
    id = read_id(row.query_id)
    if row.body_hash != body_hash:
        raise KeyReused("the key belongs to another request")
    if row.query_state == QueryState.RELEASED:
        raise QueryReleased(id)
    if row.query_state == QueryState.SETTLED:
        if row.release_us > row.now:
            raise StillRunning(id)
        return Replay(id, row.answer_status, row.answer)
    if row.query_lease_until > row.now:
        raise StillRunning(id)
    return Lapsed(id, row.attempt, row.dataset_version, row.now)


def take_over(
    connection: Connection,
    lapsed: Lapsed,
    lease_us: int,
    failure_body: Callable[[UUID], bytes],
) -> Reservation | Replay:
    """Another attempt under the same charge; after the last one, the failure for good.

    Raises: StillRunning when somebody else was faster, or the holder came back.
    """
    if lapsed.attempt >= MAX_ATTEMPTS:
        body = failure_body(lapsed.query_id)
        failure = Settle(lapsed.query_id, lapsed.attempt, FAILED, body, lapsed.now)
        if settle(connection, [failure], only_if_lapsed_at=lapsed.now) != [True]:
            raise StillRunning(lapsed.query_id)
        return Replay(lapsed.query_id, FAILED, body)
    taken = connection.execute(
        _TAKE_OVER,
        {
            "query": lapsed.query_id,
            "seen": lapsed.attempt,
            "now": lapsed.now,
            "until": lapsed.now + lease_us,
        },
    ).one_or_none()
    if taken is None:
        raise StillRunning(lapsed.query_id)
    charged = connection.execute(_RECEIPT, {"query": lapsed.query_id}).one_or_none()
    if charged is None:
        raise LedgerAlarm("a running query was never charged")
    return Reservation(
        query_id=lapsed.query_id,
        attempt=taken.attempt,
        version=lapsed.version,
        reserved_us=lapsed.now,
        receipt=charged.head,
        remaining=AccountBalance.of(AccountRank.ANALYST_ON_DATASET, tuple(charged[1:])).remaining,
    )
