"""The end of a query: its answer is stored, or its charge is released before records are opened.

Until then the holder renews the lease. Every statement compares the fencing token, the number of
the attempt, so only the current attempt changes the query. At most one answer per query is ever
stored, and only a stored answer may leave.
"""

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, bindparam, column, select, update

from storage.database.expressions import now_us, read_now
from storage.database.statements import Each
from storage.database.tables import budget_account, entry, query
from storage.database.types import Big, Int
from storage.errors import LedgerAlarm
from storage.journal.facts import Fact, ended, released
from storage.journal.layouts import EntryKind, release_subject, salted_digest
from storage.journal.streams import record
from storage.ledger.accounts import MOVED
from storage.ledger.entries import Cause, change_account
from storage.ledger.requests import QueryState, Reservation, Settle

_q, _a, _e = query.c, budget_account.c, entry.c
_RUNS = _q.state == int(QueryState.RUNNING)

#: Stores each reply whose attempt is still the latest of its query. A row is returned for each
#: stored reply; ``number`` is its position in the batch.
SETTLE = Each(
    (
        *(_q.id, _q.attempt, _q.answer, _q.answer_hash, _q.answer_status, _q.release_us),
        column("number", Int),
    ),
    lambda each: (
        update(query)
        .where(_q.id == each.id, _RUNS, _q.attempt == each.attempt)
        .values(
            state=int(QueryState.SETTLED),
            answer=each.answer,
            answer_hash=each.answer_hash,
            answer_status=each.answer_status,
            settled_us=now_us(),
            release_us=each.release_us,
        )
        .returning(
            each.number.label("number"),
            *(_q.analyst_id, _q.dataset_version, _q.attempt_us, _q.lease_until, _q.settled_us),
            *(_q.release_us, _q.salt),
        )
    ),
)
RENEW = Each(
    (_q.id, _q.attempt, column("lease", Big)),
    lambda each: (
        update(query)
        .where(_q.id == each.id, _RUNS, _q.attempt == each.attempt)
        .values(lease_until=now_us() + each.lease)
        .returning(_q.id)
    ),
)
_RELEASE = (
    update(query)
    .where(_q.id == bindparam("query"), _RUNS, _q.attempt == 1)
    .values(
        state=int(QueryState.RELEASED), settled_us=bindparam("now"), release_us=bindparam("now")
    )
    .returning(_q.analyst_id, _q.dataset_version, _q.lease_until)
)
#: Returns the accounts of a query, with the amount that was charged to each, so that it can be
#: given back.
_CHARGED = (
    select(_a.id, *(_e[name] for name in MOVED))
    .join_from(entry, budget_account, _e.account_id == _a.id)
    .where(_e.query_id == bindparam("query"), _e.kind == int(EntryKind.CHARGE))
    .order_by(_a.rank, _a.id)
)


def settle(connection: Connection, replies: Sequence[Settle]) -> Callable[[], list[bool]]:
    """Stores the replies, and records the ending of each query.

    Returns a function that gives one value per reply, False if its attempt no longer holds the
    query. Call it after ``pipelined`` ends: it records the facts.
    """
    values = [
        (
            *(one.query_id, one.attempt, one.body, sha256(one.body).digest(), one.status),
            *(one.release_us, number),
        )
        for number, one in enumerate(replies)
    ]
    # Sorted by id: concurrent batches lock in one order and cannot deadlock. The ids are compared
    # as numbers, which takes a tenth of the time of comparing UUIDs.
    rows = SETTLE.of_each(connection, sorted(values, key=lambda value: value[0].int))

    def outcomes() -> list[bool]:
        stored = {row.number: row for row in rows()}
        if stored:
            record(connection, *(_ending(replies[number], row) for number, row in stored.items()))
        return [number in stored for number in range(len(replies))]

    return outcomes


def _ending(reply: Settle, row: Any) -> Fact:
    """The fact that a reply is stored. ``row`` is the row that ``SETTLE`` returned for it."""
    if row.salt is None:
        raise LedgerAlarm("a running query has lost its salt")
    answer = salted_digest(row.salt, reply.body)
    return ended(reply.query_id, row, reply.attempt, reply.status, answer)


def renew(connection: Connection, reservations: Sequence[Reservation], lease_us: int) -> bool:
    """Extends each lease; returns False if a query has ended or another attempt holds it."""
    # Sorted by id: two processes lock rows in one order and cannot deadlock.
    rows = sorted((one.query_id, one.attempt, lease_us) for one in reservations)
    return len(RENEW.of_each(connection, rows)()) == len(rows)


def release(connection: Connection, query_id: UUID) -> bool:
    """Gives the charge back; returns False and changes nothing unless attempt 1 still runs.

    Danger: this is safe only before the records are opened. Only the holder of attempt 1 can be
    sure of that, so no other may call this.
    """
    # The query and the entries that give its charge back must have the same timestamp, because
    # verification compares them.
    now = read_now(connection)
    row = connection.execute(_RELEASE, {"query": query_id, "now": now}).one_or_none()
    if row is None:
        return False
    accounts = connection.execute(_CHARGED, {"query": query_id}).all()
    if not accounts:
        raise LedgerAlarm("a running query was never charged")
    subject = release_subject(query_id.bytes, row.dataset_version, row.lease_until)
    for account_id, *charged in accounts:
        # Gives back the amounts that were charged. A price computed today could differ from them.
        amounts = tuple(-(amount or 0) for amount in charged)
        release = Cause(EntryKind.RELEASE, row.analyst_id, now, amounts, query_id, subject)
        cause = release.counted(charged[2] is not None)
        if change_account(connection, account_id, cause) is None:
            raise LedgerAlarm("a charged account is missing")
    record(connection, released(query_id, row, now))
    return True
