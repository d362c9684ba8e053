"""An engine on one SQLite file: write-ahead log, and every commit is on disk before it returns."""

import os
import sqlite3
import time
from pathlib import Path
from typing import Any
from uuid import UUID

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.pool import QueuePool

from storage.database.statements import driver_of, executed
from storage.errors import UnusableDatabase

#: Seconds for which a write waits for the locks of other processes. Threads of this process wait
#: for each other on a lock in memory.
BUSY_SECONDS = 5.0
#: Once the write-ahead log has this many pages of 4 KB, a commit copies them into the database
#: file. Charges write the same pages often, and only the last state of a page is copied,
#: so a long log saves writes.
LOG_PAGES = 4000
OLDEST = (3, 37, 0)  # the first version of SQLite with STRICT tables

REQUIRED = {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}

# SQLite stores a UUID as 16 bytes, as ``UuidBytes`` does. PostgreSQL has a type for UUIDs.
sqlite3.register_adapter(UUID, lambda id: id.bytes)
# Without an adapter, the driver searches two protocols for each value of type bytes or None, and
# then uses the value as it is. That takes three times as long as these adapters.
for _type in (bytes, type(None)):
    sqlite3.register_adapter(_type, lambda value: value)


def sqlite_engine(url: URL) -> Engine:
    if sqlite3.sqlite_version_info < OLDEST:
        raise UnusableDatabase(f"SQLite {sqlite3.sqlite_version} is too old: 3.37 is needed")
    if not url.database or url.database == ":memory:":
        raise UnusableDatabase("a ledger in memory forgets what was spent: name a file")
    _create_private(Path(url.database))
    engine = create_engine(
        url.set(drivername="sqlite+pysqlite"),
        poolclass=QueuePool,
        pool_size=16,
        max_overflow=112,
        hide_parameters=True,
        connect_args={"check_same_thread": False, "timeout": BUSY_SECONDS},
    )
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)
    return engine


def check_settings(connection: Connection) -> None:
    """Raises UnusableDatabase if SQLite cannot use the settings that make commits durable."""
    for pragma, required in REQUIRED.items():
        actual = connection.exec_driver_sql(f"PRAGMA {pragma}").scalar_one()
        if actual != required:
            raise UnusableDatabase(
                f"SQLite answers {pragma} = {actual!r} where {required!r} is needed; "
                "the data folder must lie on a local file system"
            )


def clock_us() -> int:
    """The clock of SQLite, which is the clock of its host: microseconds since 1970."""
    return time.time_ns() // 1000


def _prepare(connection: sqlite3.Connection, _record: Any) -> None:
    # None turns off the driver's own handling of transactions, which begins them only before the
    # first write. ``_begin`` begins them instead.
    connection.isolation_level = None
    connection.create_function("now_us", 0, clock_us)
    for pragma in (
        *("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"),
        f"wal_autocheckpoint = {LOG_PAGES}",
    ):
        connection.execute(f"PRAGMA {pragma}").close()


def set_patience(driver: sqlite3.Connection, wait: bool) -> None:
    """Sets whether the connection waits for locks of other processes or fails immediately."""
    driver.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000) if wait else 0}").close()


def _begin(connection: Connection) -> None:
    # A write transaction takes its lock immediately. Otherwise it could fail between its first
    # read and its first write, and decide by values that others have changed meanwhile.
    writing = connection.get_execution_options().get("writing", False)
    executed(driver_of(connection), "BEGIN IMMEDIATE" if writing else "BEGIN")


def _create_private(path: Path) -> None:
    """Creates the file before SQLite would make it readable; its log files inherit mode 0600."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
