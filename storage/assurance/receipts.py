"""Checks receipts. A receipt is the head of the entry that charged a query."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select

from storage.assurance.verify_chains import Bad, Chains, check_chains
from storage.database.database import Database
from storage.database.snapshot import snapshot
from storage.database.tables import budget_account
from storage.ledger.entry_pages import EntryRow, entry_with_head


@dataclass(frozen=True, slots=True)
class Receipt:
    """The entry of a receipt. ``first_bad``: the first contradiction in its account's chain."""

    entry: EntryRow
    first_bad: Bad | None


def check_receipt(database: Database, head: bytes) -> Receipt | None:
    """Recompute the chain of the account with this head. Returns None if there is no such head."""
    with snapshot(database) as connection:
        entry = entry_with_head(connection, head)
        if entry is None:
            return None
        own = budget_account.c.id == entry.account_id
        rows = {row.id: row for row in connection.execute(select(budget_account).where(own))}
        return Receipt(entry, check_chains(connection, Chains(rows, own), None))
