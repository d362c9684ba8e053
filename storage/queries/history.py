"""The history of queries at this moment: until its release instant, a query is running."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import Row, Select, literal, null, or_, select, tuple_

from accounting.privacy_loss import PrivacyLoss
from storage.database.database import Database
from storage.database.expressions import now_us
from storage.database.pages import Page, decode_cursor, page_of
from storage.database.tables import dataset as datasets
from storage.database.tables import query, users
from storage.database.types import UuidBytes
from storage.errors import InvalidCursor

Status = Literal["running", "answered", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class QueryRow:
    """One query. ``answer`` is the stored reply: None while it runs, and in lists.

    ``release_us`` is None while the query runs, because the instant must not be seen before.
    """

    id: UUID
    analyst_id: int
    analyst: str
    dataset_id: int
    dataset: str
    owner_id: int
    version: int
    request: dict[str, Any]
    charge: PrivacyLoss
    neighbouring: str
    status: Status
    answer_status: int | None
    answer: bytes | None
    created_us: int
    release_us: int | None

    @property
    def is_settled(self) -> bool:
        """True if the query has a reply that may be seen."""
        return self.status in ("answered", "failed")

    def as_running(self) -> QueryRow:
        """The row without the outcome of the query."""
        return replace(self, status="running", answer_status=None, answer=None, release_us=None)


_q = query.c
_COLUMNS = [column for column in _q if column.name not in ("answer", "answer_hash", "body_hash")]
_NAMES = (
    users.c.name.label("analyst"),
    datasets.c.name.label("dataset"),
    datasets.c.owner_id,
    datasets.c.neighbouring,
    now_us().label("now"),
)
_SOURCE = query.join(users, users.c.id == _q.analyst_id).join(
    datasets, datasets.c.id == _q.dataset_id
)
_ONE: Select[Any] = select(*_COLUMNS, _q.answer, *_NAMES).select_from(_SOURCE)
# Answers may be large, and a list does not show them.
_MANY: Select[Any] = select(*_COLUMNS, null().label("answer"), *_NAMES).select_from(_SOURCE)


class Queries:
    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, query_id: UUID) -> QueryRow | None:
        with self._database.read() as connection:
            row = connection.execute(_ONE.where(_q.id == query_id)).one_or_none()
        return None if row is None else _query_row(row)

    def page(
        self,
        *,
        analyst_id: int | None = None,
        owner_id: int | None = None,
        dataset: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[QueryRow]:
        """Queries by this analyst or on this owner's datasets, newest first, without answers.

        Returns all queries if neither is given, and the queries of either if both are given.
        """
        statement = _MANY
        either = []
        if analyst_id is not None:
            either.append(_q.analyst_id == analyst_id)
        if owner_id is not None:
            either.append(datasets.c.owner_id == owner_id)
        if either:
            statement = statement.where(or_(*either))
        if dataset is not None:
            statement = statement.where(datasets.c.name == dataset)
        if cursor is not None:
            created_us, id = decode_cursor(cursor, int, str)
            key = tuple_(literal(created_us), literal(_uuid(id), UuidBytes))
            statement = statement.where(tuple_(_q.created_us, _q.id) < key)
        statement = statement.order_by(_q.created_us.desc(), _q.id.desc()).limit(limit + 1)
        with self._database.read() as connection:
            rows = connection.execute(statement).all()
        return page_of(rows, limit, _query_row, lambda row: (row.created_us, row.id.hex))


def _query_row(row: Row[Any]) -> QueryRow:
    status = _status(row)
    visible = status != "running"
    return QueryRow(
        id=row.id,
        analyst_id=row.analyst_id,
        analyst=row.analyst,
        dataset_id=row.dataset_id,
        dataset=row.dataset,
        owner_id=row.owner_id,
        version=row.dataset_version,
        request=json.loads(row.request),
        charge=PrivacyLoss(row.eps_n, row.delta_a),
        neighbouring=row.neighbouring,
        status=status,
        answer_status=row.answer_status if visible else None,
        answer=row.answer if visible else None,
        created_us=row.created_us,
        release_us=row.release_us if visible else None,
    )


def _status(row: Row[Any]) -> Status:
    if row.state == 0 or (row.state == 1 and row.release_us > row.now):
        return "running"
    if row.state == 2:
        return "cancelled"
    return "answered" if row.state == 1 and row.answer_status < 400 else "failed"


def _uuid(text: str) -> UUID:
    try:
        return UUID(hex=text)
    except ValueError:
        raise InvalidCursor("not a cursor of this list") from None
