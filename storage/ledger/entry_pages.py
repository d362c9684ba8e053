"""The entries of accounts, page by page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, Select, or_, select, tuple_

from accounting.account import AccountRank
from storage.database.pages import Page, decode_cursor, page_of
from storage.database.tables import budget_account, dataset, entry, users
from storage.journal.audit import OPERATOR_NAME
from storage.journal.layouts import EntryKind


@dataclass(frozen=True, slots=True)
class EntryRow:
    """One line of an account's history; the amounts are signed.

    ``kind``: "charge", "release", "limit_change", "freeze", "unfreeze", "genesis". Charges and
    releases change what is charged; a genesis and a limit change move the limit.
    """

    account_id: int
    seq: int
    kind: str
    rank: AccountRank
    analyst: str | None
    dataset: str | None
    actor: str
    query_id: UUID | None
    epsilon_nano: int
    delta_atto: int
    at_us: int
    head: bytes


_actor = users.alias("actor")
_e, _a = entry.c, budget_account.c
_ENTRIES: Select[Any] = select(
    *_e, _a.rank, users.c.name.label("analyst"), dataset.c.name.label("dataset"), _actor.c.name
).select_from(
    entry.join(budget_account, _a.id == _e.account_id)
    .outerjoin(users, users.c.id == _a.analyst_id)
    .outerjoin(dataset, dataset.c.id == _a.dataset_id)
    .outerjoin(_actor, _actor.c.id == _e.actor)
)


def page_of_entries(
    connection: Connection,
    analyst_id: int | None,
    owner_id: int | None,
    dataset_name: str | None,
    limit: int,
    cursor: str | None,
    kind: str | None = None,
    analyst_name: str | None = None,
) -> Page[EntryRow]:
    """Entries of this analyst or of this owner's datasets, newest first; all when neither is given.

    Somebody may be both. What is named besides narrows them down; ``kind`` as in ``EntryRow``.
    """
    statement = _ENTRIES
    concerned = []
    if analyst_id is not None:
        concerned.append(_a.analyst_id == analyst_id)
    if owner_id is not None:
        concerned.append(dataset.c.owner_id == owner_id)
    if concerned:
        statement = statement.where(or_(*concerned))
    if dataset_name is not None:
        statement = statement.where(dataset.c.name == dataset_name)
    if analyst_name is not None:
        statement = statement.where(users.c.name == analyst_name)
    if kind is not None:
        statement = statement.where(_e.kind == int(EntryKind[kind.upper()]))
    if cursor is not None:
        statement = statement.where(
            tuple_(_e.at_us, _e.account_id, _e.seq) < tuple_(*decode_cursor(cursor, int, int, int))
        )
    statement = statement.order_by(_e.at_us.desc(), _e.account_id.desc(), _e.seq.desc())
    rows = connection.execute(statement.limit(limit + 1)).all()
    return page_of(rows, limit, _entry_row, lambda row: (row.at_us, row.account_id, row.seq))


def entry_with_head(connection: Connection, head: bytes) -> EntryRow | None:
    """The entry after which its account's chain had this head."""
    row = connection.execute(_ENTRIES.where(_e.head == head)).one_or_none()
    return None if row is None else _entry_row(row)


def _entry_row(row: Row[Any]) -> EntryRow:
    return EntryRow(
        account_id=row.account_id,
        seq=row.seq,
        kind=EntryKind(row.kind).name.lower(),
        rank=AccountRank(row.rank),
        analyst=row.analyst,
        dataset=row.dataset,
        actor=row.name or OPERATOR_NAME,
        query_id=row.query_id,
        epsilon_nano=row.d_eps_n,
        delta_atto=row.d_delta_a,
        at_us=row.at_us,
        head=row.head,
    )
