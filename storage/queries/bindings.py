"""What binds answers without showing them: the salted digests that the journal holds.

Danger: the possible values of an answer are few, so a digest without a salt would confirm a guess.
Only the analyst of a query may get its salt.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, literal_column, select

from accounting.account import AccountRank
from accounting.measures import MEASURES
from accounting.privacy_loss import PrivacyLoss
from storage.database.database import Database
from storage.database.tables import budget_account, journal, query
from storage.ledger.requests import QueryState
from storage.queries.history import by_minute, latest_minute

_a, _j, _q = budget_account.c, journal.c, query.c
#: The kind of facts that end a query, as a literal, so that the unique index of endings is used.
_ENDED: ColumnElement[int] = literal_column("5")


@dataclass(frozen=True, slots=True)
class BoundAnswer:
    """An answered query without its request. ``digest`` is None for one from before the journal.

    ``released_us`` is rounded down to the minute.
    """

    id: UUID
    kind: str
    version: int
    charge: PrivacyLoss
    rho_f: int | None
    released_us: int
    digest: str | None


def salt_of(database: Database, query_id: UUID) -> bytes | None:
    """The salt of the digest of a reply; None for a query from before the journal."""
    with database.read() as connection:
        salt = connection.execute(select(_q.salt).where(_q.id == query_id)).scalar_one_or_none()
    return None if salt is None else bytes(salt)


def bound_answers(database: Database, dataset_id: int, limit: int) -> list[BoundAnswer]:
    """The newest queries on a dataset that were answered at the last full minute.

    Its readers did not ask the queries, so they see an answer no earlier than that.
    """
    columns = (_q.id, _q.dataset_version, _q.request, _q.release_us, _q.rho_f)
    amounts = tuple(_q[measure.column] for measure in MEASURES)
    answered = (
        select(*columns, *(one for one in amounts if one is not _q.rho_f))
        .where(
            _q.dataset_id == dataset_id,
            _q.state == int(QueryState.SETTLED),
            _q.answer_status < 400,
            _q.release_us <= latest_minute(),
        )
        .order_by(_q.created_us.desc(), _q.id.desc())
        .limit(limit)
    )
    with database.read() as connection:
        # The stored request of a query may be large, so only 50 rows are in memory at the same
        # time.
        rows = connection.execute(answered, execution_options={"yield_per": 50})
        answers = [_bound_answer(row) for row in rows]
        digests = _digests(connection, [one.id for one in answers])
    return [replace(one, digest=digests.get(one.id)) for one in answers]


def _bound_answer(row: Any) -> BoundAnswer:
    """The answer of a row, still without its digest."""
    return BoundAnswer(
        *(row.id, json.loads(row.request)["query"]["kind"], row.dataset_version),
        PrivacyLoss(*(getattr(row, measure.column) or 0 for measure in MEASURES)),
        *(row.rho_f, by_minute(row.release_us), None),
    )


def head_of_cap(database: Database, dataset_id: int) -> tuple[int, bytes]:
    """The number of entries of the dataset's cap, and the head of its chain."""
    cap = select(_a.seq, _a.head).where(
        _a.rank == int(AccountRank.DATASET), _a.dataset_id == dataset_id
    )
    with database.read() as connection:
        row = connection.execute(cap).one()
    return row.seq, bytes(row.head)


def _digests(connection: Connection, ids: Sequence[UUID]) -> dict[UUID, Any]:
    """The salted digest of the reply of each query, from the fact of its ending."""
    facts = select(_j.subject, _j.fact).where(
        _j.kind == _ENDED, _j.subject.in_([id.bytes for id in ids])
    )
    return {
        UUID(bytes=bytes(row.subject)): json.loads(row.fact).get("answer")
        for row in connection.execute(facts)
    }
