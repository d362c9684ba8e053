"""The history of queries. A query is shown as running until its release instant."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import BigInteger, ColumnElement, Select, bindparam, func, select, tuple_

from accounting.measures import MEASURES
from accounting.privacy_loss import PrivacyLoss
from storage.database.database import Database
from storage.database.expressions import now_us
from storage.database.pages import HotPages, Page, either, equal, key_in, page_of, read_as
from storage.database.statements import Hot, read_id
from storage.database.tables import dataset as _datasets
from storage.database.tables import query, users
from storage.database.types import UuidBytes
from storage.errors import StillRunning
from storage.ledger.requests import QueryState

Status = Literal["running", "answered", "failed", "cancelled"]
#: A minute in microseconds.
MINUTE_US = 60_000_000


@dataclass(frozen=True, slots=True)
class QueryRow:
    """One query. ``release_us`` is None while it runs: the instant must not be seen before.

    ``now_us`` is when the row was read.
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
    rho_f: int | None
    neighbouring: str
    status: Status
    created_us: int
    release_us: int | None
    now_us: int

    @classmethod
    def of(cls, row: Any) -> QueryRow:
        """Makes the query from a row with the columns of ``_MANY``."""
        whole = read_as(
            cls,
            row,
            id=read_id(row.id),
            version=row.dataset_version,
            request=json.loads(row.request),
            charge=PrivacyLoss(*(getattr(row, measure.column) or 0 for measure in MEASURES)),
            status=_status(row),
            now_us=row.now,
        )
        return whole.as_running() if whole.status == "running" else whole

    @property
    def stated_charge(self) -> dict[str, str | None]:
        """The charge as decimal texts, with the neighbouring relation under which it holds.

        It is 0 for a cancelled query, whose charge was given back.
        """
        charge = PrivacyLoss(0) if self.status == "cancelled" else self.charge
        return {**charge.as_charge(self.rho_f is not None), "neighbouring": self.neighbouring}

    @property
    def is_settled(self) -> bool:
        """True if the query has a reply that may be seen."""
        return self.status in ("answered", "failed")

    def as_running(self) -> QueryRow:
        """The row without the outcome of the query."""
        return replace(self, status="running", release_us=None)

    def by_the_minute(self) -> QueryRow:
        """The row for everybody but its analyst: as it was at the last full minute.

        A reply that left since then does not show, so the query counts as running. Times are
        rounded down to the minute.
        """
        latest = by_minute(self.now_us)
        is_new = self.is_settled and (self.release_us is None or self.release_us > latest)
        row = self.as_running() if is_new else self
        end = row.release_us
        return replace(
            row,
            created_us=by_minute(row.created_us),
            release_us=None if end is None else by_minute(end),
            now_us=latest,
        )


def by_minute(at_us: int) -> int:
    """The last full minute at or before this moment, both in microseconds."""
    return at_us // MINUTE_US * MINUTE_US


def latest_minute() -> ColumnElement[int]:
    """The last full minute by the database's clock, in microseconds."""
    return now_us() // MINUTE_US * MINUTE_US


_q, _each = query.c, query.alias("each")
_COLUMNS = [column for column in _q if column.name not in ("answer", "answer_hash", "body_hash")]
_NAMES = (
    users.c.name.label("analyst"),
    _datasets.c.name.label("dataset"),
    _datasets.c.owner_id,
    _datasets.c.neighbouring,
    now_us().label("now"),
)
_SOURCE = query.join(users, users.c.id == _q.analyst_id).join(
    _datasets, _datasets.c.id == _q.dataset_id
)
_MANY: Select[Any] = select(*_COLUMNS, *_NAMES).select_from(_SOURCE)
_HAS_ID = _q.id == bindparam("id", type_=UuidBytes())
_OF_ANALYST = _q.analyst_id == bindparam("analyst", type_=BigInteger)
#: The bytes of the request and of the stored reply. SQLite takes lengths from the head of a row.
#: Columns behind a long text take time, because SQLite reaches them through all pages of the text.
_BYTES = func.length(_q.request) + func.coalesce(func.length(_q.answer), 0)
_IS_SHORT = bindparam("longest", type_=BigInteger) >= _BYTES
_ONE = Hot(_MANY.where(_HAS_ID))
_SHORT = Hot(_MANY.where(_HAS_ID, _OF_ANALYST, _IS_SHORT))
_REPLY = Hot(
    select(_q.answer_status, _q.answer).where(
        _HAS_ID, _q.state == int(QueryState.SETTLED), _q.release_us <= now_us()
    )
)
_KEY = (_q.created_us, _q.id)
#: Pages of the queries of one analyst, newest first, by statements that are compiled once. An index
#: lists queries by analyst and time, so a page does not read and sort all queries of the analyst.
_OWN = HotPages(_MANY.where(_OF_ANALYST), _KEY)
_OWN_BYTES = HotPages(select(_BYTES.label("bytes"), *_KEY).where(_OF_ANALYST), _KEY)


class Queries:
    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, query_id: UUID) -> QueryRow | None:
        """The query of this id, or None. Danger: it does not check who may see the query."""
        rows = self._database.look_up(_ONE, id=query_id)
        return QueryRow.of(rows[0]) if rows else None

    def find_short(self, query_id: UUID, analyst_id: int, longest: int) -> QueryRow | None:
        """The query if this analyst sent it and its texts have at most ``longest`` bytes together.

        The texts are its request and its stored reply.
        """
        values = {"id": query_id, "analyst": analyst_id, "longest": longest}
        rows = self._database.look_up(_SHORT, **values)
        return QueryRow.of(rows[0]) if rows else None

    def reply(self, query_id: UUID) -> tuple[int, bytes]:
        """The status and the body of the stored reply.

        Danger: it does not check who may see the answer. Raises: StillRunning before the release of
        the reply, and where there is none.
        """
        rows = self._database.look_up(_REPLY, id=query_id)
        if not rows:
            raise StillRunning(query_id)
        ((status, body),) = rows
        return status, body

    def bytes_of_page(self, analyst_id: int, limit: int, cursor: str | None) -> int:
        """The bytes of all requests and stored replies that ``page`` reads for one analyst.

        These are the queries of the page and the one that follows. Raises: InvalidCursor.
        """
        sizes = _OWN_BYTES.page(
            self._database, limit + 1, cursor, lambda row: int(row.bytes), analyst=analyst_id
        )
        return sum(sizes.items)

    def page(
        self,
        *,
        analyst_id: int | None = None,
        owner_id: int | None = None,
        dataset: str | None = None,
        datasets: Collection[int] | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[QueryRow]:
        """Queries by this analyst or on this owner's datasets, newest first.

        Returns all queries if neither is given, and the queries of either if both are given.
        ``datasets``: only those on datasets with these ids; None for all. Raises: InvalidCursor.
        """
        others = (owner_id, dataset, datasets)
        if analyst_id is not None and all(one is None for one in others):
            return _OWN.page(self._database, limit, cursor, QueryRow.of, analyst=analyst_id)
        whose = either({_q.analyst_id: analyst_id, _datasets.c.owner_id: owner_id})
        statement = _MANY.where(whose, *equal({_datasets.c.name: dataset}))
        if datasets is not None:
            statement = statement.where(_q.dataset_id.in_(datasets))
        if analyst_id is None and datasets is None:
            of_dataset = equal({_datasets.c.owner_id: owner_id, _datasets.c.name: dataset})
            latest = self._latest(of_dataset, limit, key_in(cursor, _KEY))
            statement = statement.where(
                _q.dataset_id.in_(select(_datasets.c.id).where(*of_dataset)),
                *([] if latest is None else [_q.created_us >= latest]),
            )
        return page_of(self._database, statement, _KEY, limit, cursor, QueryRow.of)

    def _latest(
        self,
        of_dataset: Sequence[ColumnElement[bool]],
        limit: int,
        before: Sequence[ColumnElement[Any]] | None,
    ) -> int | None:
        """A moment since which these datasets have more than ``limit`` queries, up to ``before``.

        Queries are indexed by dataset and time. So the page of many datasets would sort all of
        their queries; those since this moment are few. None if no dataset has so many queries.
        """
        of_it = [_each.c.dataset_id == _datasets.c.id]
        if before is not None:
            # Several queries may have the same moment as the last query on the previous page, so
            # the ids are compared as well. The first of the two conditions follows from the second,
            # and lets the database use an index.
            of_it.append(_each.c.created_us <= before[0])
            of_it.append(tuple_(_each.c.created_us, _each.c.id) < tuple_(*before))
        moment = _each.c.created_us
        last = select(moment).where(*of_it).order_by(moment.desc()).limit(1).offset(limit)
        with self._database.read() as connection:
            whole = select(func.max(last.scalar_subquery())).where(*of_dataset)
            moment_us = connection.execute(whole.select_from(_datasets)).scalar_one()
        return None if moment_us is None else int(moment_us)


def _status(row: Any) -> Status:
    if row.state == QueryState.RELEASED:
        return "cancelled"
    if row.state == QueryState.RUNNING or row.release_us > row.now:
        return "running"
    return "answered" if row.answer_status < 400 else "failed"
