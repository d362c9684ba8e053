"""The two ways a query ends: its answer is stored, or its charge is given back unopened.

Until then its holder renews its lease. All of it is fenced: only the attempt that still holds the
query changes anything, so at most one answer per query is ever stored, and only a stored answer may
leave.
"""

from __future__ import annotations

from hashlib import sha256
from uuid import UUID

from sqlalchemy import BigInteger, Connection, bindparam, insert, or_, select, update

from storage.database.expressions import now_us
from storage.database.statements import Hot
from storage.database.tables import budget_account, entry, query, settlement
from storage.errors import LedgerAlarm
from storage.journal.layouts import EntryKind, ending_digest, release_subject
from storage.ledger.entries import Cause, add_entries, change_account

_q, _a, _e = query.c, budget_account.c, entry.c
_lapsed_at = bindparam("lapsed_at", type_=BigInteger)

_SETTLE = (
    update(query)
    .where(
        _q.id == bindparam("query"),
        _q.state == 0,
        _q.attempt == bindparam("mine"),
        or_(_lapsed_at < 0, _q.lease_until <= _lapsed_at),
    )
    .values(
        state=1,
        answer=bindparam("body"),
        answer_hash=bindparam("hash"),
        answer_status=bindparam("status"),
        settled_us=now_us(),
        release_us=bindparam("release"),
    )
    .returning(_q.settled_us, _q.dataset_version, _q.attempt_us, _q.lease_until)
)
_RENEW = (
    update(query)
    .where(_q.id == bindparam("query"), _q.state == 0, _q.attempt == bindparam("mine"))
    .values(lease_until=now_us() + bindparam("lease", type_=BigInteger))
    .returning(_q.id)
)
#: The same two for the writer's batches.
SETTLE, SETTLEMENT = Hot(_SETTLE), Hot(insert(settlement))
_RELEASE = (
    update(query)
    .where(_q.id == bindparam("query"), _q.state == 0, _q.attempt == 1)
    .values(state=2, settled_us=bindparam("now"), release_us=bindparam("now"))
    .returning(
        *(_q.analyst_id, _q.eps_n, _q.delta_a, _q.settled_us, _q.dataset_version, _q.lease_until)
    )
)
_CHARGED = (
    select(_a.id)
    .join_from(entry, budget_account, _e.account_id == _a.id)
    .where(_e.query_id == bindparam("query"), _e.kind == int(EntryKind.CHARGE))
    .order_by(_a.rank, _a.id)
)


def settle(
    connection: Connection,
    query_id: UUID,
    attempt: int,
    *,
    status: int,
    body: bytes,
    release_us: int,
    lapsed_at: int = -1,
) -> bool:
    """Store the answer of ``attempt``; False, and nothing stored, when it lost the query.

    ``lapsed_at`` ≥ 0: only if the lease had run out by then (a failure written by another).
    """
    digest = sha256(body).digest()
    row = connection.execute(
        _SETTLE,
        {
            "query": query_id,
            "mine": attempt,
            "lapsed_at": lapsed_at,
            "body": body,
            "hash": digest,
            "status": status,
            "release": release_us,
        },
    ).one_or_none()
    if row is None:
        return False
    connection.execute(
        insert(settlement),
        {
            "query_id": query_id,
            "attempt": attempt,
            "answer_hash": digest,
            "at_us": row.settled_us,
            "digest": ending_digest(
                query_id,
                attempt,
                row.dataset_version,
                status,
                digest,
                row.settled_us,
                release_us,
                (row.attempt_us, row.lease_until),
            ),
        },
    )
    return True


def renew(connection: Connection, query_id: UUID, attempt: int, lease_us: int) -> bool:
    """Keep the query for ``attempt`` from now on; False when it is over or has lost the query."""
    renewed = connection.execute(_RENEW, {"query": query_id, "mine": attempt, "lease": lease_us})
    return renewed.one_or_none() is not None


def release(connection: Connection, query_id: UUID) -> bool:
    """Give the charge back; False, and nothing changed, unless attempt 1 still runs.

    Only the holder of attempt 1 knows that it has not opened the records, so only it may call.
    """
    # One moment for the row and its entries: verification compares them.
    now = connection.execute(select(now_us())).scalar_one()
    row = connection.execute(_RELEASE, {"query": query_id, "now": now}).one_or_none()
    if row is None:
        return False
    accounts = connection.execute(_CHARGED, {"query": query_id}).scalars().all()
    if not accounts:
        raise LedgerAlarm("a running query was never charged")
    subject = release_subject(query_id, row.dataset_version, row.lease_until)
    amounts = -row.eps_n, -row.delta_a
    cause = Cause(EntryKind.RELEASE, row.analyst_id, row.settled_us, *amounts, query_id, subject)
    changes = []
    for account_id in accounts:
        changed = change_account(connection, account_id, cause)
        if changed is None:
            raise LedgerAlarm("a charged account is missing")
        changes.append(changed)
    add_entries(connection, changes)
    return True
