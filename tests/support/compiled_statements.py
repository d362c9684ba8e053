"""All engines of a test process share the statements that SQLAlchemy has compiled.

A service has one engine and compiles each statement once. Most tests make an engine of their own.
They spent a fifth of their time on compiling the same statements again.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

#: The cache of compiled SQL statements is emptied at this number. Tests that create their own
#: tables fill it with statements that are never used again.
MOST = 5000


class SharedStatements(dict[tuple[Hashable, ...], Any]):
    """Compiled statements by their key, in which any dialect of one name stands for all of them."""

    def get(self, key: tuple[Any, ...], default: Any = None) -> Any:
        return super().get(_of_any_engine(key), default)

    def __setitem__(self, key: tuple[Any, ...], compiled: Any) -> None:
        if len(self) >= MOST:
            self.clear()
        super().__setitem__(_of_any_engine(key), compiled)


def share_compiled_statements() -> None:
    """Give the same compiled statements to all connections that this process opens from now on."""
    # SQLAlchemy is imported here, because unit tests of mechanisms need no database and start
    # faster without it.
    from sqlalchemy import Connection, Engine, event

    statements = SharedStatements()

    @event.listens_for(Engine, "engine_connect")
    def share(connection: Connection) -> None:
        connection.execution_options(compiled_cache=statements)


def _of_any_engine(key: tuple[Any, ...]) -> tuple[Hashable, ...]:
    dialect, *rest = key
    return (dialect.name, dialect.driver, *rest)
