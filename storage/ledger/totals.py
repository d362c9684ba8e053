"""The allowances of analysts on a dataset, counted and added up by the database."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, func, select

from accounting.account import AccountRank
from accounting.privacy_loss import PrivacyLoss
from storage.database.tables import budget_account, dataset
from storage.ledger.accounts import SUMS

#: Danger: a sum of 64-bit amounts may exceed 64 bits. So the database adds the upper and the lower
#: half of each amount separately; a half of at most 2³² can be added two thousand million times.
_HALF = 1 << 32
#: If the totals of at most one dataset in this many are read, an index finds the accounts of each.
#: Otherwise one pass over all accounts adds them up: reading an account by an index takes several
#: times as long.
_FEW = 4


_a = budget_account.c
_RANK = int(AccountRank.ANALYST_ON_DATASET)
#: Sums of ε and δ, and none of ρ. Accounts begin to count ρ at different moments, so a sum of their
#: ρ would have no meaning.
_SUMS = (
    func.count(),
    *(func.sum(part) for column in SUMS[:2] for part in (column // _HALF, column % _HALF)),
)


class Total(NamedTuple):
    """The number of analysts' accounts on a dataset, and the sum of their charges in ε and δ."""

    accounts: int
    charged: PrivacyLoss


def totals(connection: Connection, names: Collection[str]) -> dict[str, Total]:
    """One total per name; zeros where nothing was granted."""
    of_names = select(dataset.c.id, dataset.c.name).where(dataset.c.name.in_(names))
    ids = {row.id: row.name for row in connection.execute(of_names)}
    number = connection.execute(select(func.count()).select_from(dataset)).scalar_one()
    statement = _of_all() if len(ids) * _FEW > number else _of_some(ids)
    by_name = {}
    for of, count, *sums in connection.execute(statement):
        pairs = zip(sums[::2], sums[1::2], strict=True)
        charged = PrivacyLoss(*(int(upper) * _HALF + int(lower) for upper, lower in pairs))
        if of in ids:
            by_name[ids[of]] = Total(count, charged)
    return {name: by_name.get(name, Total(0, PrivacyLoss(0))) for name in names}


def _of_all() -> Select[Any]:
    """The totals of all datasets by their ids. Adding 0 keeps the database from using an index."""
    of = _a.dataset_id + 0
    return select(of, *_SUMS).where(_a.rank + 0 == _RANK).group_by(of)


def _of_some(ids: Collection[int]) -> Select[Any]:
    """The totals of these datasets by their ids."""
    of = _a.dataset_id
    return select(of, *_SUMS).where(_a.rank == _RANK, of.in_(ids)).group_by(of)


def analyst_counts(connection: Connection, names: Collection[str]) -> dict[str, int]:
    """How many analysts have an allowance on each of these datasets, by an index alone."""
    a = budget_account.c
    own = (a.rank == int(AccountRank.ANALYST_ON_DATASET), a.dataset_id == dataset.c.id)
    # The accounts are counted by a subquery for each dataset. For a join, the database would read
    # the accounts of all datasets.
    count = select(func.count()).select_from(budget_account).where(*own).scalar_subquery()
    rows = connection.execute(select(dataset.c.name, count).where(dataset.c.name.in_(names)))
    return {row.name: int(row[1]) for row in rows}
