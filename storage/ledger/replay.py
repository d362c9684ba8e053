"""A known idempotency key: its query has a stored reply, still runs, or its lease has expired."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, and_, bindparam, select, update

from accounting.account import AccountRank
from storage.database.expressions import now_us
from storage.database.statements import Hot, read_id
from storage.database.tables import budget_account, entry, query
from storage.errors import KeyReused, LedgerAlarm, QueryReleased, StillRunning
from storage.journal.layouts import EntryKind
from storage.ledger.accounts import BALANCE, AccountBalance
from storage.ledger.requests import QueryState, Replay, Reservation, Reserve, Settle
from storage.ledger.settling import settle

#: After this many attempts without an answer, the query gets the failure reply for good.
MAX_ATTEMPTS = 3
FAILED = 500

_q, _a, _e = query.c, budget_account.c, entry.c

#: The columns that ``judge`` reads. The labels keep them apart from columns of other tables.
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

LOOK_UP = Hot(BY_KEY)

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


def judge(row: Any, body_hash: bytes) -> Replay | None:
    """The stored reply in a row of ``COLUMNS``; None if the lease of the query has expired.

    An expired query may be taken over under its idempotency key. Raises: KeyReused; QueryReleased;
    StillRunning, also for an answer whose release instant lies ahead, because until then nobody
    may learn that the work is done.
    """
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
    return None


def take_over(
    connection: Connection,
    request: Reserve,
    lease_us: int,
    failure_body: Callable[[UUID], bytes],
) -> Reservation | Replay:
    """Begins another attempt under the same charge, or returns the stored reply if there is one.

    After ``MAX_ATTEMPTS`` attempts it stores and returns the failure reply. Raises: the errors of
    ``judge``; StillRunning also if the holder renewed or another request took the query over.
    """
    key = {"analyst": request.analyst_id, "key": request.stored_key}
    row = connection.execute(BY_KEY, key).one()
    stored = judge(row, request.body_hash)
    if stored is not None:
        return stored
    id, now = row.query_id, row.now
    if request.version not in (None, row.dataset_version):
        raise StillRunning(id)  # the caller does not hold the records of this query
    if row.attempt >= MAX_ATTEMPTS:
        failure = Settle(id, row.attempt, FAILED, failure_body(id), now)
        if settle(connection, [failure], only_if_lapsed_at=now) != [True]:
            raise StillRunning(id)
        return Replay(id, FAILED, failure.body)
    seen = {"query": id, "seen": row.attempt, "now": now, "until": now + lease_us}
    attempt = connection.execute(_TAKE_OVER, seen).scalar_one_or_none()
    if attempt is None:
        raise StillRunning(id)
    charged = connection.execute(_RECEIPT, {"query": id}).one_or_none()
    if charged is None:
        raise LedgerAlarm("a running query was never charged")
    head, *balance = charged
    own = AccountBalance.of(AccountRank.ANALYST_ON_DATASET, tuple(balance))
    return Reservation(id, attempt, row.dataset_version, now, head, own.remaining)
