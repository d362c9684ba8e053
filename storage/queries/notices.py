"""What notices are made of: frozen accounts, new versions, requests, changes of accounts.

Danger: the moment at which a version is ready reveals how long its records took to prepare. So only
the owner of a dataset and the operator may get what ``versions_ready`` returns.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Select, func, literal_column, or_, select

from accounting.account import AccountRank
from storage.catalogue.dataset_rows import granted_to
from storage.database.database import Database
from storage.database.pages import equal
from storage.database.tables import (
    budget_account,
    budget_request,
    dataset,
    dataset_version,
    entry,
    users,
)
from storage.journal.layouts import EntryKind
from storage.ledger.accounts import ACCOUNTS, AccountRow
from storage.ledger.budget_requests import RequestState

_a, _d, _e, _v = budget_account.c, dataset.c, entry.c, dataset_version.c
_r = budget_request.c
#: The state of open requests, as a literal, so that the partial index of open requests is used.
_OPEN: ColumnElement[int] = literal_column(str(int(RequestState.OPEN)))
_REQUESTS = (
    select(_r.id, _d.name.label("dataset"), users.c.name.label("analyst"), _r.state)
    .join_from(budget_request, dataset, _d.id == _r.dataset_id)
    .join(users, users.c.id == _r.analyst_id)
)


@dataclass(frozen=True, slots=True)
class ReadyVersion:
    """A version that queries read since ``at_us``."""

    dataset: str
    version: int
    at_us: int


@dataclass(frozen=True, slots=True)
class Freeze:
    """A dataset with a frozen account; None for an account over all datasets.

    ``at_us``: the moment of the last entry of that account, which is its freeze as a rule.
    """

    dataset: str | None
    at_us: int


def versions_ready(
    database: Database, since_us: int, owner_id: int | None = None
) -> list[ReadyVersion]:
    """The current versions that were published at ``since_us`` or later.

    ``owner_id``: only those of this owner's datasets.
    """
    ready = (
        select(_d.name, _v.version, _v.published_us)
        .join_from(dataset, dataset_version, _v.dataset_id == _d.id)
        .where(_v.version == _d.version, _v.published_us >= since_us)
        .where(*equal({_d.owner_id: owner_id}))
    )
    with database.read() as connection:
        return [ReadyVersion(*row) for row in connection.execute(ready)]


@dataclass(frozen=True, slots=True)
class RequestNotice:
    """A request for budget, with the moment at which it was made, or decided if it is."""

    id: UUID
    dataset: str
    analyst: str
    state: RequestState
    at_us: int


def open_requests(database: Database, owner_id: int | None = None) -> list[RequestNotice]:
    """The requests for budget that wait for a decision, of this owner if one is given."""
    waiting = _REQUESTS.add_columns(_r.created_us.label("at_us"))
    return _notices(database, waiting.where(*equal({_d.owner_id: owner_id}), _r.state == _OPEN))


def decisions(
    database: Database,
    since_us: int,
    analyst_id: int | None = None,
    datasets: Collection[int] | None = None,
) -> list[RequestNotice]:
    """The decisions about requests at ``since_us`` or later.

    ``analyst_id``: only about requests of this analyst. ``datasets``: only those on datasets with
    these ids; None for all.
    """
    decided = _REQUESTS.add_columns(_r.decided_us.label("at_us")).where(
        *equal({_r.analyst_id: analyst_id}),
        _r.state.in_([int(RequestState.GRANTED), int(RequestState.REFUSED)]),
        _r.decided_us >= since_us,
    )
    if datasets is not None:
        decided = decided.where(_r.dataset_id.in_(datasets))
    return _notices(database, decided)


def _notices(database: Database, statement: Select[Any]) -> list[RequestNotice]:
    with database.read() as connection:
        return [
            RequestNotice(row.id, row.dataset, row.analyst, RequestState(row.state), row.at_us)
            for row in connection.execute(statement)
        ]


def freezes(
    database: Database,
    *,
    analyst_id: int | None = None,
    owner_id: int | None = None,
    datasets: Collection[int] | None = None,
) -> list[Freeze]:
    """The datasets with frozen accounts that concern this analyst or this owner.

    An analyst is concerned by their own accounts and by the caps of their datasets. Returns all if
    neither is given. ``datasets``: only those with these ids; None for all.
    """
    # Adding 0 keeps the database from using the indexes on analysts and datasets. Accounts are
    # rarely frozen, so the index of frozen accounts is far shorter.
    analyst, of = _a.analyst_id + 0, _a.dataset_id + 0
    concerned = []
    if analyst_id is not None:
        is_cap = _a.rank == int(AccountRank.DATASET)
        concerned += [analyst == analyst_id, is_cap & of.in_(granted_to(analyst_id))]
    if owner_id is not None:
        concerned.append(of.in_(select(_d.id).where(_d.owner_id == owner_id)))
    frozen = (
        select(_d.name, func.max(_e.at_us))
        .select_from(
            budget_account.join(entry, (_e.account_id == _a.id) & (_e.seq == _a.seq)).outerjoin(
                dataset, _d.id == _a.dataset_id
            )
        )
        .where(_a.frozen == literal_column("1"))
        .group_by(_d.name)
    )
    if concerned:
        frozen = frozen.where(or_(*concerned))
    if datasets is not None:
        frozen = frozen.where(or_(of == 0, of.in_(datasets)))
    with database.read() as connection:
        return [Freeze(*row) for row in connection.execute(frozen)]


def last_changes(database: Database, accounts: Collection[int]) -> dict[int, int]:
    """The moment of the last entry of each of these accounts, microseconds."""
    last = (
        select(_a.id, _e.at_us)
        .join_from(budget_account, entry, (_e.account_id == _a.id) & (_e.seq == _a.seq))
        .where(_a.id.in_(accounts))
    )
    with database.read() as connection:
        return {row.id: row.at_us for row in connection.execute(last)}


def limits_set_at(database: Database, accounts: Collection[int]) -> dict[int, int]:
    """The sequence number of the last entry that set the limit of each of these accounts."""
    # An index finds the few entries that name no query, and Python sorts them. To sort them by
    # number, SQLite would read all entries of the accounts.
    setting = select(_e.account_id, _e.seq).where(
        _e.account_id.in_(accounts),
        _e.query_id.is_(None),
        _e.kind.in_([int(EntryKind.GENESIS), int(EntryKind.LIMIT_CHANGE)]),
    )
    with database.read() as connection:
        # If the rows list several numbers of one account, the dict has the last of them.
        return dict(sorted(map(tuple, connection.execute(setting))))


def changed_accounts(database: Database, since_us: int, until_us: int) -> list[AccountRow]:
    """The accounts of analysts and keys with an entry, or whose time ended, in these moments.

    The moments, in microseconds, reach from ``since_us`` to before ``until_us``.
    """
    entries = select(_e.account_id).where(_e.at_us >= since_us, _e.at_us < until_us)
    ended = select(_a.id).where(_a.until_us >= since_us, _a.until_us < until_us)
    changed = ACCOUNTS.where(_a.rank != int(AccountRank.DATASET), _a.id.in_(entries.union(ended)))
    with database.read() as connection:
        return list(map(AccountRow.of, connection.execute(changed)))
