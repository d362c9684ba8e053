"""Budget accounts: the rule that a charge fits, the ranks, and the balance of one account."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from accounting.privacy_loss import PrivacyLoss


def admits(limits: Sequence[Any], sums: Sequence[Any], charge: Sequence[Any]) -> Any:
    """The guard: whether ``charge`` fits. Each sequence has one amount per measure.

    For whole numbers it returns a bool, which quotes, look-ups and the writer read. For columns it
    returns the SQL condition of the UPDATE that charges, so it uses only ``&``, ``|`` and ``<=``.
    """
    (limit_epsilon, limit_delta), (epsilon, delta) = limits, sums
    return (epsilon + charge[0] <= limit_epsilon) & (delta + charge[1] <= limit_delta)


class AccountRank(IntEnum):
    """The kinds of accounts. Locks are taken in the order of these numbers, narrow before wide."""

    ANALYST_ON_DATASET = 0
    ANALYST = 1
    DATASET = 2


@dataclass(frozen=True, slots=True)
class Account:
    """A limit and the sum of charges against it, which includes running queries."""

    limit: PrivacyLoss
    charged: PrivacyLoss

    def __post_init__(self) -> None:
        if not self.admits(PrivacyLoss(0)):
            raise ValueError("an account is never charged beyond its limit")

    @property
    def remaining(self) -> PrivacyLoss:
        return self.limit - self.charged

    def admits(self, charge: PrivacyLoss) -> bool:
        return bool(admits(self.limit.amounts, self.charged.amounts, charge.amounts))
