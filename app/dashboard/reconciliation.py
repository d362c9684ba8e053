"""Do the books agree: what analysts were charged on a dataset against what its cap was charged.

Verification recomputes the chains; this compares sums of accounts, for people who check by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from accounting.privacy_loss import PrivacyLoss
from app.routes.budgets import show_budgets
from app.usecases.services import Services
from storage.people.users import User


@dataclass(frozen=True)
class Reconciled:
    """One dataset: both sums, in whole units."""

    dataset: str
    analysts: int
    charged: PrivacyLoss
    cap_charged: PrivacyLoss
    cap: PrivacyLoss

    @property
    def agrees(self) -> bool:
        return self.charged == self.cap_charged and self.charged.fits(self.cap)


def reconciled(names: Sequence[str], viewer: User, services: Services) -> list[Reconciled]:
    """Each dataset's accounts summed. A query in between may show in one sum and not the other."""
    found = []
    for name in names:
        budgets = show_budgets(name, viewer, services)
        found.append(
            Reconciled(
                dataset=name,
                analysts=len(budgets.items),
                charged=sum((one.spent for one in budgets.items), PrivacyLoss(0)),
                cap_charged=budgets.cap.spent,
                cap=budgets.cap.allowance,
            )
        )
    return found
