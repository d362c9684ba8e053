"""An account: what one analyst may learn of one dataset, or all analysts together of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from accounting.privacy_loss import PrivacyLoss


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
        if not self.charged.fits(self.limit):
            raise ValueError("an account is never charged beyond its limit")

    @property
    def remaining(self) -> PrivacyLoss:
        return self.limit - self.charged

    def admits(self, charge: PrivacyLoss) -> bool:
        return (self.charged + charge).fits(self.limit)
