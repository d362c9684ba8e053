"""One database, SQLite or PostgreSQL, and the transactions everything else is built from.

A write is a function that is given a connection inside a transaction. It may be called again from
the start when the database asks for that, so it must do nothing outside the database that it
could not do twice. A COMMIT whose fate is unknown is never repeated.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import (
    Connection,
    Engine,
    PoolProxiedConnection,
    RootTransaction,
    make_url,
    text,
)
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from storage.database.expressions import read_now
from storage.database.failures import Again, is_refused_commit, is_unavailable, raise_meaning
from storage.database.migrating import migrate
from storage.database.postgresql import postgresql_engine
from storage.database.sqlite import check_settings, set_patience, sqlite_engine
from storage.database.statements import Hot, driver_of
from storage.errors import Busy, CommitUnknown, UnusableDatabase

T = TypeVar("T")

ATTEMPTS = 5


class Transaction:
    """A write transaction that has begun; ``commit`` or ``rollback`` ends it, exactly once.

    Any thread may use it, one at a time. ``connection`` is what statements run on.
    """

    def __init__(self, connection: Connection, end: Callable[[Connection, bool], None]) -> None:
        self.connection, self._end = connection, end
        self._inner = connection.begin()

    def run(self, work: Callable[[Connection], T]) -> T:
        """Returns the value of ``work``. After an error everything is rolled back.

        Raises: what ``work`` raises; in place of errors of the database those of ``meaning``.
        """
        try:
            return work(self.connection)
        except BaseException as error:
            self.rollback(error)
            raise_meaning(error)

    def commit(self) -> None:
        """Raises: Again when nothing was written; CommitUnknown when nobody can tell."""
        try:
            _commit(self._inner)
        except BaseException:
            self._end(self.connection, True)
            raise
        self._end(self.connection, False)

    def rollback(self, cause: BaseException | None = None) -> None:
        lost = False
        try:
            # An error of a statement on the driver's own connection is news to the pool.
            if isinstance(cause, Exception) and self._is_lost(cause):
                self.connection.invalidate(cause)
                lost = True
            self._inner.rollback()
        except DBAPIError:
            lost = True  # what is not committed is undone when the connection goes
        finally:
            self._end(self.connection, lost)

    def _is_lost(self, error: Exception) -> bool:
        dialect = self.connection.dialect
        if not isinstance(error, dialect.loaded_dbapi.Error):
            return False
        driver = self.connection.connection.dbapi_connection
        return dialect.is_disconnect(error, driver, None)


class Database:
    """Transactions on one engine; safe to share between threads."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.url = engine.url.render_as_string(hide_password=True)
        self._driver_error: type[Exception] = engine.dialect.loaded_dbapi.Error
        self._closing: list[Callable[[], None]] = []
        #: SQLite's connections that look up, while nobody uses them.
        self._readers: list[PoolProxiedConnection] = []
        #: SQLite has one writer. Threads queue on this lock, which wakes them in turn; SQLite's
        #: own busy handler sleeps and polls, and is for other processes alone.
        self._write_lock = threading.Lock()
        #: SQLite's connection that writes, guarded by ``_write_lock``.
        self._writer: Connection | None = None
        #: Whether it waits for other processes; None until it was told.
        self._patient: bool | None = None

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
        except (PoolTimeout, DBAPIError) as error:
            if is_unavailable(error):
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
        try:
            lent = self._lend_reader()
        except (PoolTimeout, DBAPIError, self._driver_error) as error:
            raise Busy("no connection to the database is free") from error
        driver: Any = lent.driver_connection
        try:
            rows = statement.rows(driver, self.engine.dialect, values)
        except BaseException as error:
            lent.invalidate()
            if is_unavailable(error):
                raise Busy("the database cannot answer now") from error
            raise
        if self.embedded:
            self._readers.append(lent)
        else:
            driver.autocommit = False
            lent.close()
        return rows

    def _lend_reader(self) -> PoolProxiedConnection:
        if not self.embedded:
            lent = self.engine.raw_connection()
            # One statement: BEGIN and ROLLBACK would be two more.
            lent.driver_connection.autocommit = True  # type: ignore[union-attr]
            return lent
        try:
            return self._readers.pop()  # the pool takes longer to lend one than a look-up takes
        except IndexError:
            return self._past_the_pool()

    def write(self, work: Callable[[Connection], T]) -> T:
        """The value of ``work`` once its transaction is committed.

        Raises: what ``work`` raises, after a rollback; Busy after five attempts; CommitUnknown;
        LedgerAlarm when a constraint stopped what the code should never have tried.
        """
        for attempt in range(ATTEMPTS):
            if attempt:
                time.sleep(random.uniform(0.5, 1.5) * 0.005 * 2**attempt)
            try:
                transaction = self.begin(wait=True)
                value = transaction.run(work)
                transaction.commit()
                return value
            except Again:
                continue
        raise Busy("the database is busy; nothing was written")

    def begin(self, *, wait: bool) -> Transaction:
        """Begins a write transaction.

        ``wait`` False is for an event loop on an ``embedded`` database: it never blocks.
        Raises: Again when the database cannot begin one now.
        """
        try:
            if self.embedded:
                return self._begin_embedded(wait)
            connection = self.engine.connect()
            try:
                return Transaction(connection, _give_back)
            except BaseException:
                connection.close()
                raise
        except BaseException as error:
            raise_meaning(error)

    def _begin_embedded(self, wait: bool) -> Transaction:
        if not self._write_lock.acquire(blocking=wait):
            raise Again
        try:
            if self._writer is None:
                self._writer, self._patient = self._new_writer(), None
            if self._patient != wait:
                set_patience(driver_of(self._writer), wait)
                self._patient = wait
            return Transaction(self._writer, self._written)
        except BaseException:
            self._write_lock.release()
            raise

    def _written(self, _connection: Connection, lost: bool) -> None:
        if lost:
            self._drop_writer()
        self._write_lock.release()

    def _new_writer(self) -> Connection:
        """A connection past the pool: it may have none left, and an event loop cannot wait."""
        return Connection(self.engine, self._past_the_pool()).execution_options(writing=True)

    def _past_the_pool(self) -> PoolProxiedConnection:
        return self.engine.pool.recreate().connect()

    def _drop_writer(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.invalidate()  # its setting is not for the pool
            writer.close()

    def now_us(self) -> int:
        """Microseconds since 1970 by the database's clock."""
        with self.read() as connection:
            return read_now(connection)

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
            self._readers.pop().invalidate()
        self._drop_writer()
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


def _commit(transaction: RootTransaction) -> None:
    try:
        transaction.commit()
    except DBAPIError as error:
        if is_refused_commit(error):
            raise Again from error
        raise CommitUnknown("the result of a commit is unknown") from error


def _give_back(connection: Connection, lost: bool) -> None:
    if lost and not connection.invalidated:
        connection.invalidate()
    connection.close()
