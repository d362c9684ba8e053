"""Budget accounts: which ones a query is charged to, what they have left, and why they refuse.

One answer serves look-ups, quotes and the writer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection, select

from accounting.account import Account, AccountRank, admits
from accounting.errors import AccountFrozen, AccountingError, BudgetExhausted, CapExhausted
from accounting.measures import MEASURES
from accounting.privacy_loss import PrivacyLoss
from storage.database.pages import read_as
from storage.database.tables import budget_account, dataset, users
from storage.errors import StorageError

Refusal = AccountingError | StorageError
#: Rank, dataset and analyst; 0 where the account ranges over all of them.
AccountKey = tuple[int, int, int]

_a = budget_account.c
LIMITS = tuple(_a[measure.limit] for measure in MEASURES)
SUMS = tuple(_a[measure.charged] for measure in MEASURES)
#: The columns of an entry, whose amounts are signed.
MOVED = tuple(measure.moved for measure in MEASURES)
#: The columns of a balance, in its order.
BALANCE = (_a.frozen, *LIMITS, *SUMS)

ACCOUNTS = select(*_a, users.c.name.label("analyst"), dataset.c.name.label("dataset")).select_from(
    budget_account.outerjoin(users, users.c.id == _a.analyst_id).outerjoin(
        dataset, dataset.c.id == _a.dataset_id
    )
)


class AccountBalance(NamedTuple):
    """An account's limits and sums, one amount per measure, at one moment."""

    rank: int
    frozen: int
    limits: tuple[int, ...]
    sums: tuple[int, ...]

    @classmethod
    def of(cls, rank: int, values: tuple[int, ...]) -> AccountBalance:
        """Of the ``values`` of the columns ``BALANCE``."""
        return cls(rank, values[0], values[1 : len(LIMITS) + 1], values[len(LIMITS) + 1 :])

    @property
    def remaining(self) -> PrivacyLoss:
        """What may still be charged."""
        return PrivacyLoss(*self.limits) - PrivacyLoss(*self.sums)


@dataclass(frozen=True, slots=True)
class AccountRow:
    """One account as it stands; ``analyst`` or ``dataset`` is None where it ranges over all."""

    id: int
    analyst: str | None
    dataset: str | None
    account: Account
    frozen: bool
    seq: int

    @classmethod
    def of(cls, row: Any) -> AccountRow:
        """Of a row of ``ACCOUNTS``."""
        limit, charged = (
            PrivacyLoss(*(getattr(row, column.name) for column in columns))
            for columns in (LIMITS, SUMS)
        )
        return read_as(cls, row, account=Account(limit, charged), frozen=bool(row.frozen))

    @property
    def etag(self) -> str:
        """Changes with every entry, so it stands for all that is shown of the account."""
        return f'"{self.id}-{self.seq}"'


def charged_accounts(dataset_id: Any, analyst_id: Any) -> tuple[tuple[int, Any, Any], ...]:
    """The keys of the accounts that a query is charged to, in lock order.

    The second is optional. Of columns the keys are conditions.
    """
    return (
        (int(AccountRank.ANALYST_ON_DATASET), dataset_id, analyst_id),
        (int(AccountRank.ANALYST), 0, analyst_id),
        (int(AccountRank.DATASET), dataset_id, 0),
    )


def has_key(account: Any, key: tuple[int, Any, Any]) -> Any:
    """The condition that a row of ``account``, the table or an alias of it, has this key."""
    c, (rank, dataset_id, analyst_id) = account.c, key
    return (c.rank == rank) & (c.dataset_id == dataset_id) & (c.analyst_id == analyst_id)


def find_account(connection: Connection, key: AccountKey, hold: bool = False) -> AccountRow | None:
    """The account; None when it was never opened.

    ``hold``: nobody else changes it before this transaction ends.
    """
    statement = ACCOUNTS.where(has_key(budget_account, key))
    if hold:
        statement = statement.with_for_update(of=budget_account)
    row = connection.execute(statement).one_or_none()
    return None if row is None else AccountRow.of(row)


def refusal_of(balances: Iterable[AccountBalance], charge: PrivacyLoss) -> Refusal | None:
    """Returns why the first of the accounts, in lock order, refuses ``charge``, if one does."""
    for balance in balances:
        if balance.frozen:
            return AccountFrozen("an account takes no new charge for now")
        if not admits(balance.limits, balance.sums, charge.amounts):
            if balance.rank == AccountRank.DATASET:
                return CapExhausted(charge=charge)
            return BudgetExhausted(charge=charge, remaining=balance.remaining)
    return None
