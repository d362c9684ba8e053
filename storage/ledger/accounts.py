"""Budget accounts as they are read: with the names of whom and what they are for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, Select, select

from accounting.account import Account, AccountRank
from accounting.measures import MEASURES
from accounting.privacy_loss import PrivacyLoss
from storage.database.tables import budget_account, dataset, users


@dataclass(frozen=True, slots=True)
class AccountRow:
    """One account as it stands; ``analyst`` or ``dataset`` is None where it ranges over all."""

    id: int
    rank: AccountRank
    analyst_id: int | None
    analyst: str | None
    dataset_id: int | None
    dataset: str | None
    account: Account
    frozen: bool
    seq: int
    head: bytes

    @property
    def etag(self) -> str:
        """Changes with every entry, so it stands for all that is shown of the account."""
        return f'"{self.id}-{self.seq}"'


def select_accounts() -> Select[Any]:
    """Accounts with the names of whom and what they are for; add conditions and an order."""
    account = budget_account
    source = account.outerjoin(users, users.c.id == account.c.analyst_id).outerjoin(
        dataset, dataset.c.id == account.c.dataset_id
    )
    return select(
        *account.c, users.c.name.label("analyst"), dataset.c.name.label("dataset")
    ).select_from(source)


def account_row(row: Row[Any]) -> AccountRow:
    return AccountRow(
        id=row.id,
        rank=AccountRank(row.rank),
        analyst_id=row.analyst_id or None,
        analyst=row.analyst,
        dataset_id=row.dataset_id or None,
        dataset=row.dataset,
        account=Account(
            limit=PrivacyLoss(*(getattr(row, measure.limit) for measure in MEASURES)),
            charged=PrivacyLoss(*(getattr(row, measure.charged) for measure in MEASURES)),
        ),
        frozen=bool(row.frozen),
        seq=row.seq,
        head=row.head,
    )
