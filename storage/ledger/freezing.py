"""Freezing accounts without anybody's key: after an alarm, or when a ledger went backwards.

A frozen account takes no charge. The freeze is an entry and its actor is 0, the operator.

Guards decide what is charged; the constraints behind them never fire. When one does, the code or
the database is wrong in a way nobody knows, so what was refused once is not to be tried again.
"""

from collections.abc import Iterable
from contextlib import suppress
from functools import partial

from sqlalchemy import ColumnElement, Connection, func, select
from sqlalchemy.exc import DBAPIError

from storage.database.database import Database
from storage.database.tables import budget_account, entry
from storage.errors import LedgerAlarm, StorageError
from storage.journal import audit
from storage.journal.layouts import EntryKind
from storage.ledger.entries import Cause, change_account

#: The actor of an entry that no user made.
OPERATOR = 0

_a, _e = budget_account.c, entry.c


def freeze(connection: Connection, accounts: Iterable[int], at_us: int) -> list[int]:
    """Freezes those of ``accounts`` that take charges, and returns their ids."""
    cause = Cause(EntryKind.FREEZE, OPERATOR, at_us)
    frozen = [id for id in sorted(accounts) if change_account(connection, id, cause)]
    if frozen:
        audit.record(connection, OPERATOR, "ledger.freeze", "ledger", {"accounts": len(frozen)})
    return frozen


def frozen_at(connection: Connection, accounts: Iterable[int]) -> set[int]:
    """Returns the moments, in microseconds, of the last freeze of each of these accounts."""
    freezes = select(func.max(_e.at_us)).where(
        _e.account_id.in_(list(accounts)), _e.kind == int(EntryKind.FREEZE)
    )
    return set(connection.execute(freezes.group_by(_e.account_id)).scalars())


def ring(database: Database, concerned: ColumnElement[bool]) -> tuple[list[int], int]:
    """Freezes accounts after an alarm; returns their ids and the moment in microseconds.

    Each by itself: what is wrong with one must not spare another. None is returned when they
    cannot be frozen, because the alarm itself is what must get through.
    """
    frozen: list[int] = []
    at_us = 0
    with suppress(StorageError, DBAPIError):
        at_us = database.now_us()
        with database.read() as connection:
            accounts = connection.execute(select(_a.id).where(concerned)).scalars().all()
        for id in accounts:
            # A row that violates a constraint cannot be charged either.
            with suppress(LedgerAlarm):
                frozen += database.write(partial(freeze, accounts=[id], at_us=at_us))
    return frozen, at_us
