"""Changes that the owner of the database can make: triggers and constraints are removed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from sqlalchemy import Column, Connection, Engine, Table, and_, create_engine, event, text, update


@contextmanager
def tampering(url: str) -> Iterator[Callable[[Any], None]]:
    """Executes and commits statements one by one, without triggers and constraints."""
    engine = create_engine(url)
    event.listen(engine, "connect", _unguarded)
    try:
        if engine.dialect.name == "sqlite":
            _drop_triggers(engine)

        def run(statement: Any) -> None:
            with engine.begin() as connection:
                connection.execute(statement)

        yield run
    finally:
        engine.dispose()


def _unguarded(connection: Any, _record: Any) -> None:
    cursor = connection.cursor()
    if type(connection).__module__.startswith("sqlite3"):
        cursor.execute("PRAGMA ignore_check_constraints = ON")
        cursor.execute("PRAGMA synchronous = OFF")
    else:
        cursor.execute("SET session_replication_role = replica")
        connection.commit()
    cursor.close()


def _drop_triggers(engine: Engine) -> None:
    with engine.begin() as connection:
        query = text("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        for name in connection.execute(query).scalars().all():
            connection.execute(text(f"DROP TRIGGER {name}"))


def other_value(column: Column[Any], value: Any) -> Any:
    """Returns another value of the same type."""
    if value is None:
        kind = column.type.python_type if column.name != "query_id" else UUID
        return UUID(int=1) if kind is UUID else {int: 1, bytes: bytes(32), str: "x"}[kind]
    if isinstance(value, UUID):
        return UUID(int=value.int ^ 1)
    if isinstance(value, int):
        # A number grows by one. In a unique column it grows by a large step, so that the row stays
        # unique.
        unique = column.primary_key or column.name in ("dataset_id", "analyst_id")
        return value + (1_000_003 if unique else 1)
    if isinstance(value, bytes):
        return bytes([value[0] ^ 1]) + value[1:] if value else b"x"
    return value + "x"


def set_field(table: Table, row: Any, column: Column[Any], value: Any, key: Any = None) -> Any:
    """An UPDATE of one field of one row; ``key`` if its primary key has changed."""
    keys = key or {c.name: getattr(row, c.name) for c in table.primary_key}
    where = and_(*(table.c[name] == part for name, part in keys.items()))
    return update(table).where(where).values({column: value})


def rows_of(connection: Connection, table: Table) -> list[Any]:
    return list(connection.execute(table.select().order_by(*table.primary_key)))
