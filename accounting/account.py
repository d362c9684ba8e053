"""An account: what one analyst may learn of one dataset, or all analysts together of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from accounting.privacy_loss import PrivacyLoss


def admits(limits: Sequence[Any], sums: Sequence[Any], charge: Sequence[Any]) -> Any:
    """The guard: whether ``charge`` fits, one amount per measure in each sequence.

    Written with ``&``, ``|`` and ``<=`` alone. Whole numbers make it a bool, for quotes, look-ups
    and the writer; columns make it the SQL condition of the UPDATE that charges.
    """
    (limit_epsilon, limit_delta), (epsilon, delta) = limits, sums
    return (epsilon + charge[0] <= limit_epsilon) & (delta + charge[1] <= limit_delta)


class AccountRank(IntEnum):
    """What an account ranges over. The numbers are the lock order, narrow before wide."""

    ANALYST_ON_DATASET = 0
    ANALYST = 1
    DATASET = 2


@dataclass(frozen=True, slots=True)
class Account:
    """A limit and what is charged against it; ``charged`` includes running queries."""

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
