"""One database, SQLite or PostgreSQL, and its transactions.

Danger: a write is a function of a connection, and may be called again from the start after a
conflict. It must do nothing outside the database that could not be done twice. A COMMIT with an
unknown result is never repeated.
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
#: The most seconds that ``Database.close`` waits for a transaction of another thread.
CLOSING_SECONDS = 5.0
_TRANSACTION = "privypurse.transaction"


class Transaction:
    """A write transaction that has begun; ``commit`` or ``rollback`` ends it, exactly once.

    Any thread may use it, one at a time. Its statements run on ``connection``. ``memory`` belongs
    to whoever writes in it. ``before_commit`` holds the last calls inside the transaction, and
    ``after_commit`` those that follow a commit with a known result.
    """

    def __init__(self, connection: Connection, end: Callable[[Connection, bool], None]) -> None:
        self.connection, self._end = connection, end
        self._inner = connection.begin()
        self.memory: dict[str, Any] = {}
        self.before_commit: list[Callable[[], None]] = []
        self.after_commit: list[Callable[[], None]] = []
        connection.info[_TRANSACTION] = self

    def run(self, work: Callable[[Connection], T]) -> T:
        """Returns the value of ``work``. After an error everything is rolled back.

        Raises: the errors of ``work``; for errors of the database, those of ``raise_meaning``.
        """
        try:
            value = work(self.connection)
            for call in self.before_commit:
                call()
            return value
        except BaseException as error:
            self.rollback(error)
            raise_meaning(error)

    def commit(self) -> None:
        """Raises: Again if nothing was written; CommitUnknown if the result is unknown."""
        try:
            _commit(self._inner)
        except BaseException:
            self._end(self.connection, True)
            raise
        for call in self.after_commit:
            call()
        self._end(self.connection, False)

    def rollback(self, cause: BaseException | None = None) -> None:
        lost = False
        try:
            # Some statements run on the driver's own connection, and SQLAlchemy does not see their
            # errors. So a lost connection is reported to SQLAlchemy here, or its pool would lend it
            # again.
            if isinstance(cause, Exception) and self._is_lost(cause):
                self.connection.invalidate(cause)
                lost = True
            self._inner.rollback()
        except DBAPIError:
            lost = True  # the broken connection is closed, which undoes the transaction
        finally:
            self._end(self.connection, lost)

    def _is_lost(self, error: Exception) -> bool:
        dialect = self.connection.dialect
        if not isinstance(error, dialect.loaded_dbapi.Error):
            return False
        driver = self.connection.connection.dbapi_connection
        return dialect.is_disconnect(error, driver, None)


def transaction_of(connection: Connection) -> Transaction:
    """The transaction that runs on a connection, as ``Database.begin`` began it."""
    transaction: Transaction = connection.info[_TRANSACTION]
    return transaction


class Database:
    """Transactions on one engine; safe to share between threads."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.url = engine.url.render_as_string(hide_password=True)
        #: True for SQLite: ``look_up`` takes microseconds and never blocks, so it needs no thread.
        #: SQLite runs inside this process, and with a write-ahead log its readers wait for no lock.
        self.embedded = engine.dialect.name == "sqlite"
        self._driver_error: type[Exception] = engine.dialect.loaded_dbapi.Error
        self._closing: list[Callable[[], None]] = []
        #: Connections to PostgreSQL that write. Each has its own stream of the journal. The most
        #: recently used one is reused first, so that streams stay few and verification quick.
        self._write_pool = engine.pool.recreate()
        #: Idle connections to SQLite for look-ups. The engine's pool would take longer than a
        #: look-up.
        self._readers: list[PoolProxiedConnection] = []
        #: SQLite has one writer. The threads of this process wait on this lock. SQLite's own busy
        #: handler, which sleeps and polls, is only for locks of other processes.
        self._write_lock = threading.Lock()
        #: The connection that writes to SQLite, guarded by ``_write_lock``.
        self._writer: Connection | None = None
        #: How ``_writer`` was last set up: True if it waits for locks of other processes, False if
        #: it fails immediately. None if it is new and was not set up yet.
        self._patient: bool | None = None

    @classmethod
    def open(cls, url: str, lock_folder: Path) -> Database:
        """Connects, migrates the schema under a lock, and checks the settings of SQLite.

        Raises: UnusableDatabase if the address, the server or the file system cannot be used, or
        the schema is newer than this version.
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
        """A transaction that only reads. Raises: Busy if the database cannot be reached now."""
        try:
            with self.engine.begin() as connection:
                yield connection
        except (PoolTimeout, DBAPIError) as error:
            if is_unavailable(error):
                raise Busy("the database cannot answer now") from error
            raise

    @property
    def folder(self) -> Path | None:
        """The folder of the file of SQLite; None for a server."""
        file = self.engine.url.database if self.embedded else None
        return None if file is None else Path(file).absolute().parent

    def look_up(self, statement: Hot, **values: Any) -> list[Any]:
        """The rows of one statement that only reads, run on the driver to save time.

        Raises: Busy if the database cannot be reached now.
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
            # Autocommit saves the BEGIN and ROLLBACK around a single statement.
            lent.driver_connection.autocommit = True  # type: ignore[union-attr]
            return lent
        try:
            # SQLAlchemy's pool would take longer than a look-up, so the idle connections are in a
            # list of their own.
            return self._readers.pop()
        except IndexError:
            return self._past_the_pool()

    def write(self, work: Callable[[Connection], T]) -> T:
        """Commits a transaction of ``work`` and returns the value of ``work``.

        Raises: the errors of ``work``, after a rollback; Busy after five attempts; CommitUnknown;
        LedgerAlarm if a constraint refused a write, which happens only through a bug.
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

        Danger: on an event loop ``wait`` must be False, or the loop may block. Only an
        ``embedded`` database reads it. Raises: Again if no transaction can begin now.
        """
        try:
            if self.embedded:
                return self._begin_embedded(wait)
            connection = Connection(self.engine, self._write_pool.connect())
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
        """A connection from outside the pool, where an event loop might wait for a free one."""
        return Connection(self.engine, self._past_the_pool()).execution_options(writing=True)

    def _past_the_pool(self) -> PoolProxiedConnection:
        return self.engine.pool.recreate().connect()

    def _drop_writer(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            # The busy timeout of this connection was changed, so it must not return to the pool.
            writer.invalidate()
            writer.close()

    def now_us(self) -> int:
        """Microseconds since 1970 by the database's clock."""
        with self.read() as connection:
            return read_now(connection)

    def ready(self) -> bool:
        """True if the database answers and its tables exist."""
        try:
            with self.read() as connection:
                connection.execute(text("SELECT 1 FROM budget_account LIMIT 1"))
        except (Busy, DBAPIError):
            return False
        return True

    def on_close(self, call: Callable[[], None]) -> None:
        """Registers a function that ``close`` calls before it closes the connections."""
        self._closing.append(call)

    def close(self) -> None:
        while self._closing:
            self._closing.pop()()
        while self._readers:
            self._readers.pop().invalidate()
        # Waits for a batch that began before the writer was closed and still runs in the event
        # loop's thread. SQLite reports a misuse of its API when a connection is closed under a
        # statement.
        waited = self._write_lock.acquire(timeout=CLOSING_SECONDS)
        try:
            self._drop_writer()
        finally:
            if waited:
                self._write_lock.release()
        self._write_pool.dispose()
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
