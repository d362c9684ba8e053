"""The allowances of analysts on a dataset, counted and added up by the database."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import Connection, func, select

from accounting.account import AccountRank
from accounting.privacy_loss import PrivacyLoss
from storage.database.tables import budget_account, dataset
from storage.ledger.accounts import SUMS

#: Danger: a sum of 64-bit amounts may exceed 64 bits. So the database adds the upper and the lower
#: half of each amount separately; a half of at most 2³² can be added two thousand million times.
_HALF = 1 << 32


class Total(NamedTuple):
    """The number of analysts' accounts on a dataset, and the sum of their charges."""

    accounts: int
    charged: PrivacyLoss


def totals(connection: Connection, names: Collection[str]) -> dict[str, Total]:
    """One total per name; zeros where nothing was granted."""
    halves = [func.sum(part) for column in SUMS for part in (column // _HALF, column % _HALF)]
    statement = (
        select(dataset.c.name, func.count(), *halves)
        .join_from(budget_account, dataset, dataset.c.id == budget_account.c.dataset_id)
        .where(
            budget_account.c.rank == int(AccountRank.ANALYST_ON_DATASET),
            dataset.c.name.in_(names),
        )
        .group_by(dataset.c.name)
    )
    by_name = {}
    for name, count, *sums in connection.execute(statement):
        pairs = zip(sums[::2], sums[1::2], strict=True)
        charged = PrivacyLoss(*(int(upper) * _HALF + int(lower) for upper, lower in pairs))
        by_name[name] = Total(count, charged)
    return {name: by_name.get(name, Total(0, PrivacyLoss(0))) for name in names}


def analyst_counts(connection: Connection, names: Collection[str]) -> dict[str, int]:
    """How many analysts have an allowance on each of these datasets, by an index alone."""
    a = budget_account.c
    own = (a.rank == int(AccountRank.ANALYST_ON_DATASET), a.dataset_id == dataset.c.id)
    # A join would begin with the accounts, and read those of all datasets.
    count = select(func.count()).select_from(budget_account).where(*own).scalar_subquery()
    rows = connection.execute(select(dataset.c.name, count).where(dataset.c.name.in_(names)))
    return {row.name: int(row[1]) for row in rows}
