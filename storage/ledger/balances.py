"""What an account has left, and why it refuses a charge: one answer for look-ups and the writer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from accounting.account import AccountRank, admits
from accounting.errors import AccountFrozen, AccountingError, BudgetExhausted, CapExhausted
from accounting.measures import MEASURES
from accounting.privacy_loss import PrivacyLoss
from storage.database.tables import budget_account
from storage.errors import StorageError

Refusal = AccountingError | StorageError

LIMITS = tuple(budget_account.c[measure.limit] for measure in MEASURES)
SUMS = tuple(budget_account.c[measure.charged] for measure in MEASURES)
#: The columns of an entry, whose amounts are signed.
MOVED = tuple(measure.moved for measure in MEASURES)
#: The columns of a balance, in its order.
BALANCE = (budget_account.c.frozen, *LIMITS, *SUMS)


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
        return PrivacyLoss(*self.limits) - PrivacyLoss(*self.sums)


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
