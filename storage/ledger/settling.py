"""The two ways a query ends: its answer is stored, or its charge is given back unopened.

Until then its holder renews its lease. All of it is fenced: only the attempt that still holds the
query changes anything, so at most one answer per query is ever stored, and only a stored answer may
leave.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Connection,
    Integer,
    LargeBinary,
    SmallInteger,
    bindparam,
    or_,
    select,
    update,
)

from accounting.measures import MEASURES
from storage.database.expressions import now_us
from storage.database.statements import Each, InsertEach, driver_of, stored_id
from storage.database.tables import budget_account, entry, query, settlement
from storage.database.types import UuidBytes
from storage.errors import LedgerAlarm
from storage.journal.layouts import EntryKind, ending_digest, release_subject
from storage.ledger.entries import Cause, add_entries, change_account
from storage.ledger.requests import QueryState, Settle

_q, _a, _e = query.c, budget_account.c, entry.c
_RUNS = _q.state == int(QueryState.RUNNING)

#: ``number`` says which of several replies of one attempt was stored.
SETTLE = Each(
    {
        "number": Integer(),
        "query": UuidBytes(),
        "attempt": Integer(),
        "lapsed_at": BigInteger(),
        "body": LargeBinary(),
        "hash": LargeBinary(),
        "status": SmallInteger(),
        "release": BigInteger(),
    },
    lambda each: (
        update(query)
        .where(
            _q.id == each.query,
            _RUNS,
            _q.attempt == each.attempt,
            or_(each.lapsed_at.is_(None), _q.lease_until <= each.lapsed_at),
        )
        .values(
            state=int(QueryState.SETTLED),
            answer=each.body,
            answer_hash=each.hash,
            answer_status=each.status,
            settled_us=now_us(),
            release_us=each.release,
        )
        .returning(
            each.number.label("number"),
            *(_q.settled_us, _q.dataset_version, _q.attempt_us, _q.lease_until),
        )
    ),
)
SETTLEMENTS = InsertEach(settlement, [column.name for column in settlement.c])
_RENEW = (
    update(query)
    .where(_q.id == bindparam("query"), _RUNS, _q.attempt == bindparam("mine"))
    .values(lease_until=now_us() + bindparam("lease", type_=BigInteger))
    .returning(_q.id)
)
_RELEASE = (
    update(query)
    .where(_q.id == bindparam("query"), _RUNS, _q.attempt == 1)
    .values(
        state=int(QueryState.RELEASED), settled_us=bindparam("now"), release_us=bindparam("now")
    )
    .returning(
        *(_q.analyst_id, _q.settled_us, _q.dataset_version, _q.lease_until),
        *(_q[measure.column] for measure in MEASURES),
    )
)
_CHARGED = (
    select(_a.id)
    .join_from(entry, budget_account, _e.account_id == _a.id)
    .where(_e.query_id == bindparam("query"), _e.kind == int(EntryKind.CHARGE))
    .order_by(_a.rank, _a.id)
)


def settle(
    connection: Connection, replies: Sequence[Settle], *, only_if_lapsed_at: int | None = None
) -> list[bool]:
    """Stores the replies. False, and nothing stored, for an attempt that lost its query.

    ``only_if_lapsed_at``: only if the lease was over at that moment, in microseconds. A failure
    that another process writes must not overtake a holder that renewed.
    """
    driver, dialect = driver_of(connection), connection.dialect
    # Sorted by id: concurrent batches lock in one order and cannot deadlock.
    numbers = sorted(range(len(replies)), key=lambda number: replies[number].query_id)
    hashes = [sha256(reply.body).digest() for reply in replies]
    rows = SETTLE.of_each(
        driver,
        dialect,
        [
            {
                "number": number,
                "query": stored_id(replies[number].query_id, dialect),
                "attempt": replies[number].attempt,
                "lapsed_at": only_if_lapsed_at,
                "body": replies[number].body,
                "hash": hashes[number],
                "status": replies[number].status,
                "release": replies[number].release_us,
            }
            for number in numbers
        ],
    )()
    settlements = []
    for row in rows:
        reply, digest = replies[row.number], hashes[row.number]
        settlements.append(
            {
                "query_id": stored_id(reply.query_id, dialect),
                "attempt": reply.attempt,
                "answer_hash": digest,
                "at_us": row.settled_us,
                "digest": ending_digest(
                    reply.query_id.bytes,
                    reply.attempt,
                    row.dataset_version,
                    reply.status,
                    digest,
                    row.settled_us,
                    reply.release_us,
                    (row.attempt_us, row.lease_until),
                ),
            }
        )
    SETTLEMENTS.insert(driver, dialect, settlements)()
    stored = {row.number for row in rows}
    return [number in stored for number in range(len(replies))]


def renew(connection: Connection, query_id: UUID, attempt: int, lease_us: int) -> bool:
    """Extends the lease of ``attempt``; False when the query is over or another attempt has it."""
    renewed = connection.execute(_RENEW, {"query": query_id, "mine": attempt, "lease": lease_us})
    return renewed.one_or_none() is not None


def release(connection: Connection, query_id: UUID) -> bool:
    """Gives the charge back; False, and nothing changed, unless attempt 1 still runs.

    Danger: only the holder of attempt 1 knows that it has not opened the records, so it alone may
    call this.
    """
    # One moment for the row and its entries: verification compares them.
    now = connection.execute(select(now_us())).scalar_one()
    row = connection.execute(_RELEASE, {"query": query_id, "now": now}).one_or_none()
    if row is None:
        return False
    accounts = connection.execute(_CHARGED, {"query": query_id}).scalars().all()
    if not accounts:
        raise LedgerAlarm("a running query was never charged")
    subject = release_subject(query_id.bytes, row.dataset_version, row.lease_until)
    amounts = tuple(-getattr(row, measure.column) for measure in MEASURES)
    cause = Cause(EntryKind.RELEASE, row.analyst_id, row.settled_us, amounts, query_id, subject)
    changes = []
    for account_id in accounts:
        changed = change_account(connection, account_id, cause)
        if changed is None:
            raise LedgerAlarm("a charged account is missing")
        changes.append(changed)
    add_entries(connection, changes)
    return True
