"""Statements of the hot path: compiled once a database, run on the driver's own connection.

To execute a small statement SQLAlchemy takes three to four times what the driver takes. It still
owns tables, dialects, pool and transactions: these statements run on the connection it lends.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Dialect, Executable
from sqlalchemy.sql.compiler import SQLCompiler

Arguments = Callable[[dict[str, Any]], Any]
#: SQLite takes 32,766 values in one statement.
ROWS_AT_ONCE = 500


class Hot:
    """One Core statement for a driver's connection; values are what the driver itself takes."""

    def __init__(self, statement: Executable) -> None:
        self._statement = statement
        self._compiled: dict[str, tuple[str, Arguments]] = {}
        self._make: Any = None

    def rows(self, driver: Any, dialect: Dialect, values: dict[str, Any]) -> list[Any]:
        """Run it and fetch what it returns: named tuples, by the labels of the statement."""
        sql, arguments = self.compiled(dialect)
        return list(map(self._make, executed(driver, sql, arguments(values)).fetchall()))

    def changes(self, driver: Any, dialect: Dialect, values: dict[str, Any]) -> int:
        """Run it; how many rows it has changed. To have SQLite return them takes as long again."""
        sql, arguments = self.compiled(dialect)
        return int(executed(driver, sql, arguments(values)).rowcount)

    def insert_all(self, driver: Any, dialect: Dialect, many: Sequence[dict[str, Any]]) -> None:
        """Insert every one of ``many`` by the INSERT of one row: rows take less than statements."""
        sql, arguments = self.compiled(dialect)
        row = sql[sql.rindex("(") :]
        for start in range(0, len(many), ROWS_AT_ONCE):
            rows = many[start : start + ROWS_AT_ONCE]
            all_of_them = [one for values in rows for one in arguments(values)]
            executed(driver, sql + f", {row}" * (len(rows) - 1), all_of_them)

    def compiled(self, dialect: Dialect) -> tuple[str, Arguments]:
        """Its text, and what makes the driver's arguments of its values."""
        known = self._compiled.get(dialect.name)
        if known is None:
            compiled = self._statement.compile(dialect=dialect)  # type: ignore[attr-defined]
            assert isinstance(compiled, SQLCompiler)
            # Numbers that stand in the statement itself are parameters to the compiler.
            constants = {
                name: value for name, value in compiled.params.items() if value is not None
            }
            known = str(compiled), _arguments(constants, compiled.positiontup or ())
            names = [column.name for column in compiled._result_columns]
            made: Any = namedtuple("Row", names)  # type: ignore[misc]
            self._make = made._make
            self._compiled[dialect.name] = known
        return known


def _arguments(constants: dict[str, Any], order: Sequence[str]) -> Arguments:
    """By position where the driver wants an ``order``, by name otherwise."""
    if not order:
        return lambda values: constants | values
    if len(order) == 1:
        return lambda values: ((constants | values)[order[0]],)
    in_order = itemgetter(*order)
    return lambda values: in_order(constants | values)


def executed(driver: Any, sql: str, arguments: Any = ()) -> Any:
    """The one place where a statement of the hot path meets the database."""
    return driver.execute(sql, arguments)


def driver_of(connection: Connection) -> Any:
    """The driver's own connection, inside the same transaction."""
    return connection.connection.driver_connection


def stored_id(id: UUID, dialect: Dialect) -> Any:
    """A UUID as the driver takes it (``storage.database.types.UuidBytes``)."""
    return id if dialect.name == "postgresql" else id.bytes


def read_id(value: Any) -> UUID:
    """A UUID as the driver gives it."""
    return value if isinstance(value, UUID) else UUID(bytes=value)
