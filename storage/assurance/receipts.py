"""A receipt is the head of the entry that charged a query: here it is found in its chain again."""

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
    """The entry a receipt stands for. ``first_bad``: why its account's chain does not hold."""

    entry: EntryRow
    first_bad: Bad | None


def check_receipt(database: Database, head: bytes) -> Receipt | None:
    """Recompute the chain of the account that has an entry with this head; None: none has."""
    with snapshot(database) as connection:
        found = entry_with_head(connection, head)
        if found is None:
            return None
        own = budget_account.c.id == found.account_id
        rows = {row.id: row for row in connection.execute(select(budget_account).where(own))}
        return Receipt(found, check_chains(connection, Chains(rows, own), None))
