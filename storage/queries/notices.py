"""What notices are made of: frozen accounts, new versions, and when accounts last changed.

Danger: the moment at which a version is ready reveals how long its records took to prepare. So only
the owner of a dataset may get what ``versions_ready`` returns.
"""

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import func, literal_column, or_, select

from accounting.account import AccountRank
from storage.catalogue.dataset_rows import granted_to
from storage.database.database import Database
from storage.database.tables import budget_account, dataset, dataset_version, entry

_a, _d, _e, _v = budget_account.c, dataset.c, entry.c, dataset_version.c


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


def versions_ready(database: Database, owner_id: int, since_us: int) -> list[ReadyVersion]:
    """The current versions of the owner's datasets that were published at ``since_us`` or later."""
    ready = (
        select(_d.name, _v.version, _v.published_us)
        .join_from(dataset, dataset_version, _v.dataset_id == _d.id)
        .where(_d.owner_id == owner_id, _v.version == _d.version, _v.published_us >= since_us)
    )
    with database.read() as connection:
        return [ReadyVersion(*row) for row in connection.execute(ready)]


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
