"""A known idempotency key: its query has a stored reply, still runs, or its lease has expired."""

import json
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, and_, bindparam, literal_column, select, update

from accounting.account import AccountRank
from storage.database.expressions import now_us, uuid_bytes
from storage.database.statements import Hot, read_id
from storage.database.tables import budget_account, entry, journal, query, settlement
from storage.errors import KeyReused, LedgerAlarm, QueryReleased, StillRunning
from storage.journal.facts import FactKind, taken_over
from storage.journal.layouts import EntryKind, salted_digest
from storage.journal.streams import record
from storage.ledger.accounts import BALANCE, AccountBalance
from storage.ledger.requests import Equals, QueryState, Replay, Reservation, Reserve

_q, _a, _e = query.c, budget_account.c, entry.c

#: The text of the fact that ended a query, of which there is at most one. The kind is a literal in
#: the SQL text, so that the partial unique index of endings is used.
_ENDING = (
    select(journal.c.fact)
    .where(
        journal.c.subject == uuid_bytes(_q.id),
        journal.c.kind == literal_column(str(int(FactKind.ENDED))),
    )
    .correlate(query)
    .scalar_subquery()
)
#: The attempt that ended a query, by its row of the table ``settlement``. Before schema 0008 this
#: row, and not a fact of the journal, recorded the end.
_SETTLEMENT = (
    select(settlement.c.attempt)
    .where(settlement.c.query_id == _q.id)
    .correlate(query)
    .scalar_subquery()
)
#: The columns that ``judge`` reads. Labels distinguish them from columns of other tables in the
#: same statement.
COLUMNS = (
    _q.id.label("query_id"),
    _q.body_hash,
    _q.form,
    _q.request.label("stored_request"),
    _q.state.label("query_state"),
    _q.attempt,
    _q.lease_until.label("query_lease_until"),
    _q.dataset_version,
    _q.answer,
    _q.answer_status,
    _q.release_us,
    _q.salt,
    _ENDING.label("ending"),
    _SETTLEMENT.label("settled_attempt"),
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
    .returning(_q.attempt, _q.rho_f, _q.form)
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


def judge(row: Any, body_hash: bytes, equals: Equals | None = None) -> Replay | None:
    """The stored reply in a row of ``COLUMNS``; None if the lease of the query has expired.

    ``equals`` compares a stored request of another hash with the new one. An expired query may be
    taken over under its idempotency key. Raises: KeyReused; QueryReleased;
    StillRunning, also for an answer whose release instant lies ahead, because until then nobody
    may learn that the work is done; LedgerAlarm if a query that has ended is to run again, which
    would draw a second answer for one charge.
    """
    id = read_id(row.query_id)
    is_same = row.body_hash == body_hash
    if not is_same and not (equals is not None and equals(row.form, row.stored_request)):
        raise KeyReused("the key belongs to another request")
    if row.query_state == QueryState.RELEASED:
        raise QueryReleased(id)
    if row.query_state == QueryState.SETTLED:
        if row.release_us > row.now:
            raise StillRunning(id)
        return Replay(id, row.answer_status, row.answer)
    if row.ending is not None or row.settled_attempt is not None:
        return _ended_before(row, id)
    if row.query_lease_until > row.now:
        raise StillRunning(id)
    return None


def _ended_before(row: Any, id: UUID) -> Replay:
    """The stored reply of a query whose row runs although it has ended.

    Raises: LedgerAlarm if the row no longer holds the reply of that ending; QueryReleased;
    StillRunning until the release instant.
    """
    ending = json.loads(row.ending) if row.ending is not None else {}
    if ending.get("released"):
        raise QueryReleased(id)
    if row.answer is None or row.salt is None or "answer" not in ending:
        raise LedgerAlarm("a query that has ended has lost its answer")
    if salted_digest(row.salt, row.answer).hex() != ending["answer"]:
        raise LedgerAlarm("a query that has ended has another answer")
    if ending["release"] > row.now:
        raise StillRunning(id)
    return Replay(id, ending["status"], row.answer)


def take_over(connection: Connection, request: Reserve, lease_us: int) -> Reservation | Replay:
    """Begins another attempt under the same charge, or returns the stored reply if there is one.

    Attempts have no limit: a failure of the machine, even a repeated one, is never an answer.
    Raises: the errors of ``judge``; StillRunning also if the holder renewed or another request took
    the query over.
    """
    key = {"analyst": request.analyst_id, "key": request.stored_key}
    row = connection.execute(BY_KEY, key).one()
    stored = judge(row, request.body_hash, request.equals)
    if stored is not None:
        return stored
    id, now = row.query_id, row.now
    if request.version not in (None, row.dataset_version):
        # The query reads another version of the records than the caller has opened, so this caller
        # cannot compute its answer.
        raise StillRunning(id)
    seen = {"query": id, "seen": row.attempt, "now": now, "until": now + lease_us}
    taken = connection.execute(_TAKE_OVER, seen).one_or_none()
    if taken is None:
        raise StillRunning(id)
    attempt, charged_rho, form = taken
    charged = connection.execute(_RECEIPT, {"query": id}).one_or_none()
    if charged is None:
        raise LedgerAlarm("a running query was never charged")
    head, *balance = charged
    record(connection, taken_over(id, request.analyst_id, attempt, now))
    own = AccountBalance.of(AccountRank.ANALYST_ON_DATASET, tuple(balance))
    version, rest = row.dataset_version, own.remaining
    return Reservation(id, attempt, version, now, head, rest, own.has_rho, charged_rho, form)
