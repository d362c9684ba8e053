"""The entries of accounts, one page at a time."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, Select, select

from accounting.account import AccountRank
from storage.database.database import Database
from storage.database.pages import Page, either, equal, page_of, read_as
from storage.database.tables import budget_account, dataset, entry, users
from storage.journal.audit import OPERATOR_NAME
from storage.journal.layouts import EntryKind
from storage.ledger.accounts import MOVED


@dataclass(frozen=True, slots=True)
class EntryRow:
    """One line of an account's history; the amounts are signed, one per measure (0 if not counted).

    ``key_id`` is the API key whose own account this is, else empty.
    ``kind``: "charge", "release", "limit_change", "freeze", "unfreeze", "genesis". Charges and
    releases change what is charged; a genesis and a limit change move the limit.
    """

    account_id: int
    seq: int
    kind: str
    rank: AccountRank
    analyst: str | None
    dataset: str | None
    key_id: str
    actor: str
    query_id: UUID | None
    amounts: tuple[int, ...]
    at_us: int
    head: bytes

    @property
    def epsilon_nano(self) -> int | None:
        """The change in ε; None for a charge without a finite ε, and for its release."""
        epsilon, _, _, unpriced = self.amounts
        return None if unpriced and self.kind in ("charge", "release") else epsilon

    @classmethod
    def of(cls, row: Row[Any]) -> EntryRow:
        """Makes the entry from a row that the statement ``_ENTRIES`` selected."""
        return read_as(
            cls,
            row,
            kind=EntryKind(row.kind).name.lower(),
            rank=AccountRank(row.rank),
            actor=row.name or OPERATOR_NAME,
            amounts=tuple(getattr(row, name) or 0 for name in MOVED),
        )


_actor = users.alias("actor")
_e, _a = entry.c, budget_account.c
_ENTRIES: Select[Any] = select(
    *_e,
    _a.rank,
    _a.key_id,
    users.c.name.label("analyst"),
    dataset.c.name.label("dataset"),
    _actor.c.name,
).select_from(
    entry.join(budget_account, _a.id == _e.account_id)
    .outerjoin(users, users.c.id == _a.analyst_id)
    .outerjoin(dataset, dataset.c.id == _a.dataset_id)
    .outerjoin(_actor, _actor.c.id == _e.actor)
)


def page_of_entries(
    database: Database,
    *,
    analyst_id: int | None = None,
    owner_id: int | None = None,
    datasets: Collection[int] | None = None,
    dataset_name: str | None = None,
    kind: str | None = None,
    analyst_name: str | None = None,
    limit: int = 50,
    cursor: str | None = None,
) -> Page[EntryRow]:
    """Entries of this analyst or on this owner's datasets, newest first.

    Returns all entries if neither is given, and the entries of either if both are given. The other
    arguments admit only entries on datasets with these ids, or with that name of a dataset, kind
    (as in ``EntryRow``) or analyst.
    """
    number = None if kind is None else int(EntryKind[kind.upper()])
    narrowed = {dataset.c.name: dataset_name, users.c.name: analyst_name, _e.kind: number}
    whose = either({_a.analyst_id: analyst_id, dataset.c.owner_id: owner_id})
    statement = _ENTRIES.where(whose, *equal(narrowed))
    if datasets is not None:
        statement = statement.where(_a.dataset_id.in_(datasets))
    key = (_e.at_us, _e.account_id, _e.seq)
    return page_of(database, statement, key, limit, cursor, EntryRow.of)


def entry_with_head(connection: Connection, head: bytes) -> EntryRow | None:
    """The entry after which the chain of its account had this head; None if there is none."""
    row = connection.execute(_ENTRIES.where(_e.head == head)).one_or_none()
    return None if row is None else EntryRow.of(row)
