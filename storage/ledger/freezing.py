"""Freezing accounts without anybody's key, after an alarm or when a ledger went backwards.

A frozen account takes no charge. The freeze is an entry and its actor is 0, the operator.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, func, select

from storage.database.tables import entry
from storage.journal import audit
from storage.journal.layouts import EntryKind
from storage.ledger.entries import Cause, add_entries, change_account

#: The actor of an entry that no user made.
OPERATOR = 0

_e = entry.c


def freeze(connection: Connection, accounts: Iterable[int], at_us: int) -> list[int]:
    """Freezes those of ``accounts`` that take charges, and returns their ids."""
    cause = Cause(EntryKind.FREEZE, OPERATOR, at_us)
    changes = [change_account(connection, id, cause) for id in sorted(accounts)]
    frozen = [change for change in changes if change is not None]
    if frozen:
        add_entries(connection, frozen)
        audit.record(connection, OPERATOR, "ledger.freeze", "ledger", {"accounts": len(frozen)})
    return [change.entry["account_id"] for change in frozen]


def frozen_at(connection: Connection, accounts: Iterable[int]) -> set[int]:
    """Returns the moments, in microseconds, of the last freeze of each of these accounts."""
    freezes = select(func.max(_e.at_us)).where(
        _e.account_id.in_(list(accounts)), _e.kind == int(EntryKind.FREEZE)
    )
    return set(connection.execute(freezes.group_by(_e.account_id)).scalars())
