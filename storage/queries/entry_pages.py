"""The entries of accounts, one page at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Select,
    String,
    bindparam,
    literal_column,
    select,
    tuple_,
)

from accounting.account import AccountRank
from storage.database.database import Database
from storage.database.pages import HotPages, Page, either, equal, key_in, page_of, read_as
from storage.database.statements import read_id
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
    def of(cls, row: Any) -> EntryRow:
        """Makes the entry from a row that the statement ``_ENTRIES`` selected."""
        return read_as(
            cls,
            row,
            kind=EntryKind(row.kind).name.lower(),
            rank=AccountRank(row.rank),
            actor=row.name or OPERATOR_NAME,
            query_id=None if row.query_id is None else read_id(row.query_id),
            amounts=tuple(getattr(row, name) or 0 for name in MOVED),
        )


#: The number of newest entries, of all accounts, in which a page of some accounts is searched
#: first. Only if they do not fill the page, all entries of its accounts are read.
WINDOW = 10_000

_actor = users.alias("actor")
_e, _a = entry.c, budget_account.c
_KEY = (_e.at_us, _e.account_id, _e.seq)
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
    others = (owner_id, datasets, dataset_name, kind, analyst_name)
    if analyst_id is not None and all(one is None for one in others):
        return _own_page(database, analyst_id, limit, cursor)
    of_kind = [] if kind is None else _is_of(EntryKind[kind.upper()])

    def admitted(read: Callable[[Any], Any]) -> list[ColumnElement[bool]]:
        whose = {read(_a.analyst_id): analyst_id, read(dataset.c.owner_id): owner_id}
        names = {read(dataset.c.name): dataset_name, read(users.c.name): analyst_name}
        among = [] if datasets is None else [read(_a.dataset_id).in_(datasets)]
        return [either(whose), *equal(names), *of_kind, *among]

    if any(one is not None for one in (analyst_id, owner_id, datasets, dataset_name, analyst_name)):
        # An owner may have hundreds of thousands of accounts, with many more entries. Most pages
        # lie among the newest entries of all accounts, which one index lists, so a page is searched
        # there first.
        since_us = _window(database, cursor)
        recent = _ENTRIES.where(*admitted(_unindexed))
        if since_us is not None:
            recent = recent.where(_e.at_us >= since_us)
        page = page_of(database, recent, _KEY, limit, cursor, EntryRow.of)
        if page.next is not None or since_us is None:
            return page
    whole = _ENTRIES.where(*admitted(lambda column: column))
    return page_of(database, whole, _KEY, limit, cursor, EntryRow.of)


def _own_page(
    database: Database, analyst_id: int, limit: int, cursor: str | None
) -> Page[EntryRow]:
    """As ``page_of_entries``, of the accounts of one analyst, whose page is read most often."""
    values = {"analyst": analyst_id, "since": _window(database, cursor) or 0}
    page = _OWN_RECENT.page(database, limit, cursor, EntryRow.of, **values)
    if page.next is not None or not values["since"]:
        return page
    return _OWN.page(database, limit, cursor, EntryRow.of, analyst=analyst_id)


def _is_of(kind: EntryKind) -> list[ColumnElement[bool]]:
    """The conditions of entries of this kind."""
    # The condition that an entry is no charge is a literal in the SQL text, so that the partial
    # index ``entry_no_charge`` is used.
    no_charge = [] if kind == EntryKind.CHARGE else [_e.kind > literal_column("1")]
    return [_e.kind == int(kind), *no_charge]


def _window(database: Database, cursor: str | None) -> int | None:
    """The moment since which there are ``WINDOW`` entries up to the cursor; None if never."""
    moment = select(_e.at_us).order_by(_e.at_us.desc()).limit(1).offset(WINDOW)
    before = key_in(cursor, _KEY)
    if before is not None:
        moment = moment.where(tuple_(*_KEY) < tuple_(*before))
    with database.read() as connection:
        return connection.execute(moment).scalar_one_or_none()


def _unindexed(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """The value of ``column`` for a condition that no index serves, so that time is read first."""
    return column + ("" if isinstance(column.type, String) else 0)


_analyst, _since = (bindparam(name, type_=BigInteger) for name in ("analyst", "since"))
_OWN = HotPages(_ENTRIES.where(_a.analyst_id == _analyst), _KEY)
_OWN_RECENT = HotPages(
    _ENTRIES.where(_unindexed(_a.analyst_id) == _analyst, _e.at_us >= _since), _KEY
)


def entry_with_head(connection: Connection, head: bytes) -> EntryRow | None:
    """The entry after which the chain of its account had this head; None if there is none."""
    row = connection.execute(_ENTRIES.where(_e.head == head)).one_or_none()
    return None if row is None else EntryRow.of(row)
