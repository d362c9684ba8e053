"""A ledger in memory whose earlier contents can be restored, for tests of very many small steps.

The service refuses to run on one (``storage.database.sqlite``), because a restart would lose it.
Schema, triggers, functions, statements and transactions are those of a file.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.pool import StaticPool

from storage.database.sqlite import _begin, _prepare


def memory_engine() -> Engine:
    """An engine on one connection, to an empty database."""
    engine = create_engine(
        "sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False}
    )
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)
    return engine


def driver(engine: Engine) -> Any:
    """The only connection of a ``memory_engine``."""
    with engine.connect() as connection:
        return connection.connection.driver_connection


def copied(source: sqlite3.Connection) -> sqlite3.Connection:
    """The same database in a memory of its own."""
    copy = sqlite3.connect(":memory:", check_same_thread=False)
    source.backup(copy)
    return copy


def put_back(target: sqlite3.Connection, copy: sqlite3.Connection) -> None:
    """Restore the contents that ``copied`` took."""
    copy.backup(target)
