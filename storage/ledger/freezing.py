"""Freezing accounts automatically: after an alarm, or after the restore of an old backup.

A frozen account takes no charge. The freeze is an entry and its actor is 0, the operator.

The guards refuse every charge that does not fit, so a constraint behind them fires only if the
code or the database has an unknown fault. The accounts are frozen until an operator has looked.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, select
from sqlalchemy.exc import DBAPIError

from storage.database.database import Database
from storage.database.tables import budget_account, entry
from storage.errors import LedgerAlarm, StorageError
from storage.journal.facts import FactKind, changed
from storage.journal.layouts import EntryKind
from storage.journal.streams import record
from storage.ledger.entries import Cause, change_account

#: The actor id of entries that no user caused: the operator or the service itself did.
OPERATOR = 0

_a, _e = budget_account.c, entry.c


def freeze(connection: Connection, accounts: Iterable[int], at_us: int) -> list[int]:
    """Freezes those of ``accounts`` that are not frozen yet, and returns their ids."""
    cause = Cause(EntryKind.FREEZE, OPERATOR, at_us)
    frozen = [id for id in sorted(accounts) if change_account(connection, id, cause)]
    if frozen:
        record_freeze(connection, "ledger.freeze", frozen, {})
    return frozen


def record_freeze(
    connection: Connection, action: str, accounts: Sequence[int], detail: Mapping[str, Any]
) -> None:
    """Records that accounts are frozen, or that a freeze ends."""
    detail = {"accounts": len(accounts), **detail}
    state = {"accounts": list(accounts)}
    record(
        connection, changed(FactKind.FREEZE, b"", OPERATOR, action, "ledger", detail, state, None)
    )


def frozen_at(connection: Connection, accounts: Iterable[int]) -> set[int]:
    """Returns the moment of the last freeze of each of these accounts, in microseconds."""
    freezes = select(func.max(_e.at_us)).where(
        _e.account_id.in_(list(accounts)), _e.kind == int(EntryKind.FREEZE)
    )
    return set(connection.execute(freezes.group_by(_e.account_id)).scalars())


def ring(database: Database, concerned: ColumnElement[bool]) -> tuple[list[int], int]:
    """Freezes accounts after an alarm; returns their ids and the moment in microseconds.

    Each account has its own transaction, because a fault of one must not keep another unfrozen.
    If the database fails, the ids of those not frozen are missing, and the alarm is raised anyway.
    """
    frozen: list[int] = []
    at_us = 0
    with suppress(StorageError, DBAPIError):
        at_us = database.now_us()
        with database.read() as connection:
            accounts = connection.execute(select(_a.id).where(concerned)).scalars().all()
        for id in accounts:
            # A row that violates a constraint cannot be frozen. It cannot be charged either,
            # because every other change of it fails too.
            with suppress(LedgerAlarm):
                frozen += database.write(partial(freeze, accounts=[id], at_us=at_us))
    return frozen, at_us
