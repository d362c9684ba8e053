"""Budget accounts: which accounts a query is charged to, what remains, and why they refuse.

Look-ups, quotes and the writer of the ledger all call these functions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection, select

from accounting.account import (
    Account,
    AccountRank,
    Limit,
    remaining,
)
from accounting.errors import (
    AccountFrozen,
    AccountingError,
    AllowanceEnded,
    BudgetExhausted,
    CapExhausted,
)
from accounting.measures import GAUSSIAN, MEASURES, MOVED_GAUSSIAN
from accounting.obstacle import largest_charge, obstacle
from accounting.privacy_loss import PrivacyLoss
from storage.database.expressions import now_us
from storage.database.pages import read_as
from storage.database.tables import budget_account, dataset, users
from storage.errors import StorageError

Refusal = AccountingError | StorageError
_a = budget_account.c
LIMITS = (*(_a[measure.limit] for measure in MEASURES), _a[GAUSSIAN])
SUMS = tuple(_a[measure.charged] for measure in MEASURES)
#: The columns with the signed amounts by which an entry changes its account, one per measure.
MOVED = tuple(measure.moved for measure in MEASURES)
#: The columns with the signed amounts of an entry that changes a limit: one per measure, and the
#: change of the permission of releases without a finite ε.
MOVED_LIMIT = (*MOVED, MOVED_GAUSSIAN)
#: The columns of an account from which ``AccountBalance.of`` makes a balance, in their order: the
#: freeze, the end, the limits and the sums of charges.
BALANCE = (_a.frozen, _a.until_us, *LIMITS, *SUMS)
_SUMS_FROM = 2 + len(LIMITS)
#: The name of each account in the text of a refusal. An ``Obstacle`` completes the sentence, such
#: as "has too little epsilon left for this charge".
ACCOUNT_NAMES = {
    AccountRank.KEY: "the limit of the API key",
    AccountRank.ANALYST_ON_DATASET: "the allowance for this dataset",
    AccountRank.ANALYST: "the analyst's limit over all datasets",
    AccountRank.DATASET: "the cap of the dataset",
}

ACCOUNTS = select(
    *(*_a, users.c.name.label("analyst"), dataset.c.name.label("dataset")),
    now_us().label("now"),
).select_from(
    budget_account.outerjoin(users, users.c.id == _a.analyst_id).outerjoin(
        dataset, dataset.c.id == _a.dataset_id
    )
)


class AccountKey(NamedTuple):
    """What identifies an account. The parts may also be SQL columns.

    A number is 0, and ``key_id`` is empty, if the account covers all of them.
    """

    rank: Any
    dataset_id: Any
    analyst_id: Any
    key_id: Any = ""


class AccountBalance(NamedTuple):
    """An account's limits and sums, as ``accounting.account.admits`` reads them, at one moment.

    From ``until_us`` on, a moment in microseconds, the account takes no new charge; None: always.
    """

    rank: int
    frozen: int
    until_us: int | None
    limits: tuple[int, ...]
    sums: tuple[int, ...]

    @classmethod
    def of(cls, rank: int, values: tuple[Any, ...]) -> AccountBalance:
        """Makes a balance from the ``values`` of the columns ``BALANCE``."""
        frozen, until_us = values[:2]
        return cls(rank, frozen, until_us, values[2:_SUMS_FROM], values[_SUMS_FROM:])

    def is_open(self, at_us: int) -> bool:
        """Whether the account takes charges at this moment, if they fit."""
        return not self.frozen and not self.has_ended(at_us)

    def has_ended(self, at_us: int) -> bool:
        """Whether ``until_us`` has come at this moment."""
        return self.until_us is not None and self.until_us <= at_us

    @property
    def has_rho(self) -> bool:
        """Whether charges may also fit by their ρ."""
        return self.limits[3] > 0  # δ_c, which is 0 in accounts without a limit in ρ

    @property
    def remaining(self) -> PrivacyLoss:
        """The amount that may still be charged, one part per measure."""
        return remaining(self.limits, self.sums)


@dataclass(frozen=True, slots=True)
class AccountRow:
    """One stored account; ``analyst`` or ``dataset`` is None if the account covers all of them.

    ``key_id`` is the API key of an account that a key has of its own, else empty. ``is_over``: from
    ``until_us`` on, a moment in microseconds, the account takes no new charge.
    """

    id: int
    analyst: str | None
    dataset: str | None
    key_id: str
    account: Account
    frozen: bool
    seq: int
    until_us: int | None
    is_over: bool

    @classmethod
    def of(cls, row: Any) -> AccountRow:
        """Makes the account from a row that the statement ``ACCOUNTS`` selected."""
        limits, sums = (
            [getattr(row, column.name) for column in columns] for columns in (LIMITS, SUMS)
        )
        account = Account(Limit.read(limits), PrivacyLoss(*sums))
        is_over = row.until_us is not None and row.until_us <= row.now
        return read_as(cls, row, account=account, frozen=bool(row.frozen), is_over=is_over)

    @property
    def remaining(self) -> PrivacyLoss:
        """The amount that may still be charged: nothing once the account is over."""
        return PrivacyLoss(0) if self.is_over else self.account.remaining

    @property
    def largest_epsilon(self) -> int:
        """The largest ε, in nano-ε, of a single query that may still be charged."""
        return 0 if self.is_over else self.account.largest_epsilon

    @property
    def etag(self) -> str:
        """The HTTP ETag. It changes with every entry, and so with every change of the account."""
        return f'"{self.id}-{self.seq}"'


def charged_accounts(dataset_id: Any, analyst_id: Any) -> tuple[AccountKey, ...]:
    """The accounts that a query is charged to, whichever key it came with, in lock order.

    The second account, over all datasets, need not exist. The ids may also be SQL columns.
    """
    return (
        AccountKey(int(AccountRank.ANALYST_ON_DATASET), dataset_id, analyst_id),
        AccountKey(int(AccountRank.ANALYST), 0, analyst_id),
        AccountKey(int(AccountRank.DATASET), dataset_id, 0),
    )


def account_of_key(analyst_id: Any, key_id: Any) -> AccountKey:
    """The account of an API key with a limit, which its queries are charged to as well."""
    return AccountKey(int(AccountRank.KEY), 0, analyst_id, key_id)


def has_key(account: Any, key: AccountKey) -> Any:
    """The SQL condition that a row of ``account`` (``budget_account`` or an alias) has ``key``."""
    c = account.c
    return (
        (c.rank == key.rank)
        & (c.dataset_id == key.dataset_id)
        & (c.analyst_id == key.analyst_id)
        & (c.key_id == key.key_id)
    )


def find_account(connection: Connection, key: AccountKey, hold: bool = False) -> AccountRow | None:
    """Returns the account with this key, or None if it was never opened.

    If ``hold``, the row is locked until this transaction ends, so no other can change it.
    """
    statement = ACCOUNTS.where(has_key(budget_account, key))
    if hold:
        statement = statement.with_for_update(of=budget_account)
    row = connection.execute(statement).one_or_none()
    return None if row is None else AccountRow.of(row)


def refusal_of(
    balances: Iterable[AccountBalance], charge: PrivacyLoss, at_us: int
) -> Refusal | None:
    """Returns the refusal of the first account that cannot take ``charge`` at this moment.

    Returns None if all accounts can take it.
    """
    for balance in balances:
        if balance.frozen:
            return AccountFrozen("an account takes no new charge for now")
        if balance.has_ended(at_us):
            return AllowanceEnded(charge=charge)
        why = obstacle(balance.limits, balance.sums, charge.amounts)
        if why is None:
            continue
        rank = AccountRank(balance.rank)
        reason = f"{ACCOUNT_NAMES[rank]} {why}"
        if rank == AccountRank.DATASET:
            return CapExhausted(charge=charge, has_rho=balance.has_rho, reason=reason)
        return BudgetExhausted(
            charge=charge,
            remaining=balance.remaining,
            largest=largest_charge(balance.limits, balance.sums, charge.amounts),
            rank=rank,
            has_rho=balance.has_rho,
            reason=reason,
        )
    return None
