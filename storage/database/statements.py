"""Statements of the hot path: compiled once a database, run on the driver's own connection.

To execute a small statement SQLAlchemy takes three to four times what the driver takes. It still
owns tables, dialects, pool and transactions: these statements run on the connection it lends.
"""

from __future__ import annotations

import re
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from operator import itemgetter
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    Connection,
    Dialect,
    Executable,
    Table,
    bindparam,
    column,
    func,
)
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.types import TypeEngine

Arguments = Callable[[dict[str, Any]], Any]


class Hot:
    """One Core statement for a driver's connection; values are what the driver itself takes."""

    def __init__(self, statement: Executable) -> None:
        self._statement = statement
        self._compiled: dict[str, tuple[str, Arguments]] = {}
        self._make: Any = None

    def rows(self, driver: Any, dialect: Dialect, values: dict[str, Any]) -> list[Any]:
        """Run it and fetch what it returns: named tuples, by the labels of the statement."""
        return self.sent(driver, dialect, values)()

    def sent(
        self, driver: Any, dialect: Dialect, values: dict[str, Any]
    ) -> Callable[[], list[Any]]:
        """Runs it; what is returned fetches its rows, after the pipeline it is part of."""
        sql, arguments = self.compiled(dialect)
        cursor = executed(driver, sql, arguments(values))
        return lambda: list(map(self._make, cursor.fetchall()))

    def compiled(self, dialect: Dialect) -> tuple[str, Arguments]:
        """Its text, and what makes the driver's arguments of its values."""
        cached = self._compiled.get(dialect.name)
        if cached is None:
            compiled = self._for(dialect).compile(dialect=dialect)  # type: ignore[attr-defined]
            assert isinstance(compiled, SQLCompiler)
            # Numbers that stand in the statement itself are parameters to the compiler.
            constants = {
                name: value for name, value in compiled.params.items() if value is not None
            }
            cached = self._text(compiled), _arguments(constants, compiled.positiontup or ())
            names = [column.name for column in compiled._result_columns]
            statement: Any = namedtuple("Row", names)  # type: ignore[misc]
            self._make = statement._make
            self._compiled[dialect.name] = cached
        return cached

    def _for(self, _dialect: Dialect) -> Executable:
        return self._statement

    def _text(self, compiled: SQLCompiler) -> str:
        return str(compiled)


class Each(Hot):
    """A statement for many rows of values: one run per row on SQLite, one for all on PostgreSQL.

    Args:
        types: of the values, by name.
        statement: made from an object with one attribute per value. On SQLite those are parameters;
            on PostgreSQL they are the columns of ``unnest``, whose arrays travel as binary.
    """

    def __init__(
        self, types: Mapping[str, TypeEngine[Any]], statement: Callable[[Any], Executable]
    ) -> None:
        parameters = {name: bindparam(name, type_=type) for name, type in types.items()}
        super().__init__(statement(SimpleNamespace(**parameters)))
        self._types, self._state = types, statement

    def of_each(
        self, driver: Any, dialect: Dialect, many: Sequence[dict[str, Any]]
    ) -> Callable[[], list[Any]]:
        """Runs it for all rows; what is returned fetches what they return, after a pipeline."""
        if not many:
            return list
        sql, arguments = self.compiled(dialect)
        if dialect.name != "postgresql":
            returned: list[Any] = []
            for values in many:
                returned += executed(driver, sql, arguments(values)).fetchall()
            rows = list(map(self._make, returned))
            return lambda: rows
        columns = {name: [one[name] for one in many] for name in self._types}
        cursor = executed(driver, sql, arguments(columns))
        return lambda: list(map(self._make, cursor.fetchall()))

    def _for(self, dialect: Dialect) -> Executable:
        if dialect.name != "postgresql":
            return self._statement
        arrays = [bindparam(name, type_=ARRAY(type)) for name, type in self._types.items()]
        rows = func.unnest(*arrays).table_valued(
            *(column(name, type) for name, type in self._types.items()), name="each_row"
        )
        return self._state(rows.render_derived().c)

    def _text(self, compiled: SQLCompiler) -> str:
        return re.sub(r"%\((\w+)\)s", r"%(\1)b", str(compiled))


class InsertEach:
    """The INSERT of many rows into one table. Without ``key``, a row whose key is taken fails.

    ``key``: the columns of a key that may be taken; such a row is left out.
    """

    def __init__(self, table: Table, names: Sequence[str], *key: str) -> None:
        self._table, self._names, self._key = table, tuple(names), key
        self._texts: dict[str, str] = {}
        self._values = itemgetter(*self._names)

    def insert(
        self, driver: Any, dialect: Dialect, many: Sequence[dict[str, Any]]
    ) -> Callable[[], int]:
        """Inserts all; what is returned tells how many there were, after a pipeline."""
        if not many:
            return int
        sql = self._texts.get(dialect.name) or self._texts.setdefault(
            dialect.name, self._text(dialect)
        )
        if dialect.name == "postgresql":
            values: Any = {name: [one[name] for one in many] for name in self._names}
        else:
            values = list(map(self._values, many))
        cursor = executed(driver, sql, values)
        return lambda: int(cursor.rowcount)

    def _text(self, dialect: Dialect) -> str:
        if dialect.name == "postgresql":
            arrays = (
                f"%({name})b::{self._table.c[name].type.compile(dialect)}[]" for name in self._names
            )
            source = f"SELECT * FROM unnest({', '.join(arrays)})"
        else:
            source = f"VALUES ({', '.join('?' * len(self._names))})"
        conflict = f" ON CONFLICT ({', '.join(self._key)}) DO NOTHING" if self._key else ""
        return f"INSERT INTO {self._table.name} ({', '.join(self._names)}) {source}{conflict}"


def pipelined(connection: Connection) -> AbstractContextManager[Any]:
    """Statements of the block go to PostgreSQL without waiting for one another's results."""
    if connection.dialect.name == "postgresql":
        return driver_of(connection).pipeline()  # type: ignore[no-any-return]
    return nullcontext()


def _arguments(constants: dict[str, Any], order: Sequence[str]) -> Arguments:
    """By position where the driver wants an ``order``, by name otherwise."""
    if not order:
        return lambda values: constants | values
    if len(order) == 1:
        return lambda values: ((constants | values)[order[0]],)
    in_order = itemgetter(*order)
    return lambda values: in_order(constants | values)


def executed(driver: Any, sql: str, arguments: Any = ()) -> Any:
    """The one place where a statement of the hot path meets the database; a list is many rows."""
    run = driver.executemany if isinstance(arguments, list) else driver.execute
    return run(sql, arguments)


def driver_of(connection: Connection) -> Any:
    """The driver's own connection, inside the same transaction."""
    return connection.connection.driver_connection


def stored_id(id: UUID, dialect: Dialect) -> Any:
    """A UUID as the driver takes it (``storage.database.types.UuidBytes``)."""
    return id if dialect.name == "postgresql" else id.bytes


def read_id(value: Any) -> UUID:
    """A UUID as the driver gives it."""
    return value if isinstance(value, UUID) else UUID(bytes=value)
