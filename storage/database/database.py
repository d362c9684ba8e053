"""One database, SQLite or PostgreSQL, and the transactions everything else is built from.

A write is a function that is given a connection inside a transaction. It may be called again from
the start when the database asks for that, so it must do nothing outside the database that it
could not do twice. A COMMIT whose fate is unknown is never repeated.
"""

from __future__ import annotations

import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import (
    Connection,
    Engine,
    PoolProxiedConnection,
    Transaction,
    make_url,
    select,
    text,
)
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from storage.database.expressions import now_us
from storage.database.migrating import migrate
from storage.database.postgresql import postgresql_engine
from storage.database.sqlite import check_settings, sqlite_engine
from storage.database.statements import Hot, driver_of, executed
from storage.errors import Busy, CommitUnknown, LedgerAlarm, UnusableDatabase

T = TypeVar("T")

ATTEMPTS = 5
#: serialization failure, deadlock, lock not available
REFUSED = {"40001", "40P01", "55P03"}
#: no connection to be had, server starting; server or session told to stop, server crashed
AGAIN = REFUSED | {"53300", "57P03", "57P01", "57P02"}
TIMED_OUT = "57014"  # canceled: a statement that took that long once is not tried again
#: check constraint; raise_exception, which is what the append-only triggers use
ALARMS = {"23514", "P0001"}


class Again(Exception):
    """Raised by a write that lost a race: roll back and call it again from the start."""


class Database:
    """Transactions on one engine; safe to share between threads."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.url = engine.url.render_as_string(hide_password=True)
        self._writing = engine.execution_options(writing=True)
        assert engine.dialect.dbapi is not None
        self._driver_error: type[Exception] = engine.dialect.dbapi.Error
        self._closing: list[Callable[[], None]] = []
        #: SQLite's connections that look up, while nobody uses them.
        self._readers: list[sqlite3.Connection] = []
        # Waiting threads are woken in turn by a lock; SQLite's own busy handler sleeps and polls.
        self._turn = threading.Lock()
        self._queue: AbstractContextManager[object] = (
            self._turn if engine.dialect.name == "sqlite" else nullcontext()
        )
        #: The connection that waits for nobody; whoever has the turn uses it.
        self._hasty: Connection | None = None

    @classmethod
    def open(cls, url: str, lock_folder: Path) -> Database:
        """Connect, bring the schema up to date under a lock, check what the ledger relies on.

        Raises: UnusableDatabase when the address, the server, the file system or a schema newer
        than this version makes that impossible.
        """
        engine = _engine(url)
        try:
            migrate(engine, lock_folder)
            with engine.connect() as connection:
                if engine.dialect.name == "sqlite":
                    check_settings(connection)
        except DBAPIError as error:
            engine.dispose()
            raise UnusableDatabase(f"cannot use the database: {error.orig}") from error
        except BaseException:
            engine.dispose()
            raise
        return cls(engine)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that only reads; Busy when the database cannot be reached now."""
        try:
            with self.engine.begin() as connection:
                yield connection
        except PoolTimeout as error:
            raise Busy("no connection to the database is free") from error
        except DBAPIError as error:
            if _transient(error) or _timed_out(error):
                raise Busy("the database cannot answer now") from error
            raise

    @property
    def embedded(self) -> bool:
        """Whether ``look_up`` takes microseconds and waits for nobody, so that it needs no thread.

        SQLite reads its own memory, and a reader of its write-ahead log is never locked out.
        """
        return self.engine.dialect.name == "sqlite"

    def look_up(self, statement: Hot, **values: Any) -> list[Any]:
        """The rows of one statement that only reads, past everything that costs time.

        Raises: Busy when the database cannot be reached now.
        """
        if self.embedded:
            return self._look_up_embedded(statement, values)
        try:
            lent = self.engine.raw_connection()
        except (PoolTimeout, DBAPIError, self._driver_error) as error:
            raise Busy("no connection to the database is free") from error
        driver: Any = lent.driver_connection
        try:
            driver.autocommit = True  # one statement: BEGIN and ROLLBACK would be two more
            return statement.rows(driver, self.engine.dialect, values)
        except self._driver_error as error:
            if self.engine.dialect.is_disconnect(error, driver, None):  # type: ignore[arg-type]
                lent.invalidate(error)
            if _transient(error) or _timed_out(error):
                raise Busy("the database cannot answer now") from error
            raise
        finally:
            if lent.is_valid:
                driver.autocommit = False
            lent.close()

    def _look_up_embedded(self, statement: Hot, values: dict[str, Any]) -> list[Any]:
        """On a connection past the pool, which takes longer to lend one than a look-up takes."""
        try:
            driver = self._readers.pop()
        except IndexError:
            driver = self._new_reader()
        try:
            rows = statement.rows(driver, self.engine.dialect, values)
        except self._driver_error as error:
            driver.close()
            if _transient(error):
                raise Busy("the database cannot answer now") from error
            raise
        self._readers.append(driver)
        return rows

    def _new_reader(self) -> sqlite3.Connection:
        try:
            lent = self._past_the_pool()
        except self._driver_error as error:
            raise Busy("no connection to the database is free") from error
        driver = lent.driver_connection
        lent.detach()
        assert isinstance(driver, sqlite3.Connection)
        return driver

    def write(self, work: Callable[[Connection], T]) -> T:
        """The value of ``work`` once its transaction is committed.

        Raises: what ``work`` raises, after a rollback; Busy after five attempts; CommitUnknown;
        LedgerAlarm when a constraint stopped what the code should never have tried.
        """
        for attempt in range(ATTEMPTS):
            if attempt:
                time.sleep(random.uniform(0.5, 1.5) * 0.005 * 2**attempt)
            try:
                with self._queue:
                    return self._once(work)
            except (Again, PoolTimeout):
                continue
            except (DBAPIError, self._driver_error) as error:
                if _alarming(error):
                    raise LedgerAlarm("a constraint of the ledger stopped a write") from error
                if _timed_out(error):
                    raise Busy("a statement took too long; nothing was written") from error
                if not _transient(error):
                    raise
        raise Busy("the database is busy; nothing was written")

    def begin(self, work: Callable[[Connection], T]) -> Callable[[], T] | None:
        """Run ``work`` at once in a transaction that is left open; what commits it, for its value.

        For an ``embedded`` database, whose statements wait for nobody. None when another
        transaction is under way or anything goes wrong: nothing is written then, and ``write`` is
        the way. What is returned is to be called once, from any thread. It raises Busy when nothing
        is written after all; CommitUnknown.
        """
        if not self._turn.acquire(blocking=False):
            return None
        try:
            if self._hasty is None:
                self._hasty = self._new_hasty()
            transaction = DriverTransaction(driver_of(self._hasty))
        except (DBAPIError, self._driver_error):
            self._turn.release()
            return None  # another process has its turn, or ``write`` finds what is the matter
        except BaseException:
            self._turn.release()
            raise
        try:
            value = work(self._hasty)
        except BaseException as error:
            self._roll_back(transaction)
            self._turn.release()
            if isinstance(error, Exception):
                return None  # ``write`` meets it again, and has an answer to it
            raise
        return partial(self._finish, transaction, value)

    def _finish(self, transaction: DriverTransaction, value: T) -> T:
        try:
            _commit(transaction)
            return value
        except CommitUnknown:
            self._drop_hasty()
            raise
        except self._driver_error as error:
            raise Busy("the database is busy; nothing was written") from error
        finally:
            self._turn.release()

    def _new_hasty(self) -> Connection:
        connection = Connection(self.engine, self._past_the_pool()).execution_options(begun=True)
        driver_of(connection).execute("PRAGMA busy_timeout = 0").close()
        return connection

    def _past_the_pool(self) -> PoolProxiedConnection:
        """A new connection at once: the pool may have none left, and an event loop cannot wait."""
        return self.engine.pool.recreate().connect()

    def _roll_back(self, transaction: DriverTransaction) -> None:
        try:
            transaction.rollback()
        except self._driver_error:
            self._drop_hasty()

    def _drop_hasty(self) -> None:
        hasty, self._hasty = self._hasty, None
        if hasty is not None:
            hasty.invalidate()  # its setting is not for the pool
            hasty.close()

    def _once(self, work: Callable[[Connection], T]) -> T:
        with self._writing.connect() as connection:
            transaction = connection.begin()
            try:
                value = work(connection)
            except self._driver_error as error:
                # From a statement on the driver's own connection, which the pool knows nothing of.
                if self._is_lost(connection, error):
                    connection.invalidate(error)
                transaction.rollback()
                raise
            except BaseException:
                transaction.rollback()
                raise
            _commit(transaction)
            return value

    def _is_lost(self, connection: Connection, error: Exception) -> bool:
        driver = connection.connection.dbapi_connection
        return self.engine.dialect.is_disconnect(error, driver, None)  # type: ignore[arg-type]

    def now_us(self) -> int:
        """Microseconds since 1970 by the database's clock."""
        with self.read() as connection:
            return connection.execute(select(now_us())).scalar_one()

    def ready(self) -> bool:
        """The database answers and its tables are there."""
        try:
            with self.read() as connection:
                connection.execute(text("SELECT 1 FROM budget_account LIMIT 1"))
        except (Busy, DBAPIError):
            return False
        return True

    def on_close(self, call: Callable[[], None]) -> None:
        """Have ``call`` made before the connections go, such as a writer's that must drain."""
        self._closing.append(call)

    def close(self) -> None:
        while self._closing:
            self._closing.pop()()
        while self._readers:
            self._readers.pop().close()
        self._drop_hasty()
        self.engine.dispose()


def _engine(url: str) -> Engine:
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise UnusableDatabase("the database address is not a URL") from None
    backend = parsed.drivername.split("+")[0]
    if backend == "sqlite":
        return sqlite_engine(parsed)
    if backend in ("postgresql", "postgres"):
        return postgresql_engine(parsed)
    raise UnusableDatabase(f"{backend} is not supported: use sqlite or postgresql")


class DriverTransaction:
    """A write transaction of SQLite on the driver's own connection, begun when it is made."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        executed(driver, "BEGIN IMMEDIATE")

    def commit(self) -> None:
        self._driver.execute("COMMIT")

    def rollback(self) -> None:
        if self._driver.in_transaction:
            self._driver.execute("ROLLBACK")


def _commit(transaction: Transaction | DriverTransaction) -> None:
    try:
        transaction.commit()
    except (DBAPIError, sqlite3.Error) as error:
        if _refused(error) and not getattr(error, "connection_invalidated", False):
            transaction.rollback()
            raise  # the database itself says that nothing was committed
        raise CommitUnknown("the result of a commit is unknown") from error


def _refused(error: Exception) -> bool:
    """A COMMIT that had no effect. A session that was ended during one may have committed."""
    cause = _cause(error)
    if isinstance(cause, sqlite3.Error):
        return _transient(error)
    return getattr(cause, "sqlstate", None) in REFUSED


def _transient(error: Exception) -> bool:
    """The transaction had no effect and may well have one when it is run again."""
    cause = _cause(error)
    if isinstance(cause, sqlite3.Error):
        code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
        return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    if getattr(error, "connection_invalidated", False):
        return True
    state = getattr(cause, "sqlstate", None)
    # Without a state the server was never reached or went away.
    return state in AGAIN or (state is None and type(cause).__name__ == "OperationalError")


def _timed_out(error: Exception) -> bool:
    return getattr(_cause(error), "sqlstate", None) == TIMED_OUT


def _alarming(error: Exception) -> bool:
    cause = _cause(error)
    if isinstance(cause, sqlite3.Error):
        code = getattr(cause, "sqlite_errorcode", 0)
        return code in (sqlite3.SQLITE_CONSTRAINT_CHECK, sqlite3.SQLITE_CONSTRAINT_TRIGGER)
    return getattr(cause, "sqlstate", None) in ALARMS


def _cause(error: Exception) -> BaseException | None:
    """The driver's error, which SQLAlchemy wraps when a statement went through it."""
    return error.orig if isinstance(error, DBAPIError) else error
