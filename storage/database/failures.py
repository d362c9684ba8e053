"""The meaning of an error of the database: run again, give up, freeze accounts, or unknown.

Danger: a COMMIT with an unknown result may have succeeded, so nothing is run again after it.
"""

import sqlite3
from typing import NoReturn

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from storage.errors import Busy, LedgerAlarm, OutOfRoom

#: Codes of PostgreSQL for a transaction that was rolled back because of another one: a failed
#: serialization, a deadlock, a lock that was not available.
REFUSED = {"40001", "40P01", "55P03"}
#: Codes after which the same transaction may be run again: those of ``REFUSED``, too many
#: connections, a server that starts, stops or has crashed, and a session that was ended.
AGAIN = REFUSED | {"53300", "57P03", "57P01", "57P02"}
#: PostgreSQL's code of a statement that took too long. It is not run again.
TIMED_OUT = "57014"
#: Codes of a machine whose disk is full or fails, or that has no memory or file descriptor left.
#: Those of PostgreSQL are prefixes of SQLSTATE codes.
NO_ROOM_SQLITE = frozenset(
    {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM}
)
NO_ROOM_POSTGRESQL = ("531", "532", "58")
#: Codes that show a bug or an attack: a CHECK or the trigger of an append-only table has fired.
ALARMS = {"23514", "P0001"}
#: PostgreSQL's code of a violated unique constraint. Only in the journal is it an alarm: a query
#: has two endings, or a stream has two facts with one number.
DUPLICATE = "23505"


class Again(Exception):
    """Nothing was written, and the same transaction may succeed when it is run from the start."""


def raise_meaning(error: BaseException) -> NoReturn:
    """Raises the meaning of ``error`` after a rollback: Again, Busy, LedgerAlarm or ``error``."""
    if is_transient(error):
        raise Again from error
    if is_timed_out(error):
        raise Busy("a statement took too long; nothing was written") from error
    if is_out_of_room(error):
        raise OutOfRoom("the machine of the ledger has no room now") from error
    if _is_alarm(error):
        raise LedgerAlarm("a constraint of the ledger stopped a write") from error
    try:
        raise error
    finally:
        del error  # Its traceback refers to this frame, which must not refer back to it.


def is_unavailable(error: BaseException) -> bool:
    """True if a read failed that may succeed later."""
    return is_transient(error) or is_timed_out(error) or is_out_of_room(error)


def is_transient(error: BaseException) -> bool:
    """True if the transaction had no effect and may succeed when it is run again."""
    if isinstance(error, PoolTimeout):
        return True
    cause = _cause(error)
    if isinstance(cause, sqlite3.Error):
        code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
        return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    if getattr(error, "connection_invalidated", False):
        return True
    state = getattr(cause, "sqlstate", None)
    # An error without an SQLSTATE code means that the server was not reached or closed the
    # connection, so the transaction may be run again.
    return state in AGAIN or (state is None and type(cause).__name__ == "OperationalError")


def is_timed_out(error: BaseException) -> bool:
    return getattr(_cause(error), "sqlstate", None) == TIMED_OUT


def is_out_of_room(error: BaseException) -> bool:
    """True if the disk is full or fails, or the process has no memory or file descriptor left."""
    cause = _cause(error)
    if isinstance(cause, sqlite3.Error):
        return getattr(cause, "sqlite_errorcode", 0) & 0xFF in NO_ROOM_SQLITE
    return str(getattr(cause, "sqlstate", None)).startswith(NO_ROOM_POSTGRESQL)


def is_refused_commit(error: BaseException) -> bool:
    """True if the database reports that the COMMIT had no effect.

    A session that ended during its COMMIT may have committed, so this returns False for it.
    """
    if getattr(error, "connection_invalidated", False):
        return False
    cause = _cause(error)
    if isinstance(cause, sqlite3.Error):
        return is_transient(error)
    return getattr(cause, "sqlstate", None) in REFUSED


def _is_alarm(error: BaseException) -> bool:
    cause = _cause(error)
    if isinstance(cause, sqlite3.Error):
        code = getattr(cause, "sqlite_errorcode", 0)
        if code in (sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY):
            return "journal" in str(cause)
        return code in (sqlite3.SQLITE_CONSTRAINT_CHECK, sqlite3.SQLITE_CONSTRAINT_TRIGGER)
    state = getattr(cause, "sqlstate", None)
    if state == DUPLICATE:
        name = getattr(getattr(cause, "diag", None), "constraint_name", None)
        return name in ("journal_ending", "pk_journal")
    return state in ALARMS


def _cause(error: BaseException) -> BaseException | None:
    """The driver's error, which SQLAlchemy wraps if it has run the statement."""
    return error.orig if isinstance(error, DBAPIError) else error
