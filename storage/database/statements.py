"""Statements of the hot path: compiled once per database, run on the driver's own connection.

SQLAlchemy takes three to four times as long as the driver to run a small statement. It still owns
tables, dialects, pool and transactions; these statements run on a connection of its pool.
"""

import re
from collections import namedtuple
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    ColumnClause,
    Connection,
    Dialect,
    Executable,
    Table,
    bindparam,
    column,
    func,
)
from sqlalchemy.sql.compiler import SQLCompiler

#: A function that turns values into the arguments with which the driver runs a statement once.
#: Arguments have names, except in ``Each`` on SQLite, where they have positions.
Arguments = Callable[[Any], Any]
#: The prefix of the names of the parameters that ``Each`` makes for its columns.
PREFIX = "each_"


class Hot:
    """One SQLAlchemy statement, run by the driver; its values have the driver's types."""

    def __init__(self, statement: Executable) -> None:
        self._statement = statement
        self._compiled: dict[str, tuple[str, Arguments]] = {}
        self._make: Any = None

    def rows(self, driver: Any, dialect: Dialect, values: dict[str, Any]) -> list[Any]:
        """Runs the statement and returns its rows: named tuples, by the labels of its columns."""
        sql, arguments = self.compiled(dialect)
        return list(map(self._make, executed(driver, sql, arguments(values)).fetchall()))

    def compiled(self, dialect: Dialect) -> tuple[str, Arguments]:
        """The SQL text, and the function that turns values into the driver's arguments."""
        cached = self._compiled.get(dialect.name)
        if cached is None:
            compiled = self._for(dialect).compile(dialect=dialect)  # type: ignore[attr-defined]
            assert isinstance(compiled, SQLCompiler)
            # SQLAlchemy turns constants of a statement into parameters too. Their values are
            # remembered here and sent with each execution.
            constants = {
                name: value for name, value in compiled.params.items() if value is not None
            }
            order = [name.removeprefix(PREFIX) for name in compiled.positiontup or ()]
            cached = self._text(compiled), self._arguments(constants, order)
            names = [column.name for column in compiled._result_columns]
            statement: Any = namedtuple("Row", names)  # type: ignore[misc]
            self._make = statement._make
            self._compiled[dialect.name] = cached
        return cached

    def _for(self, _dialect: Dialect) -> Executable:
        return self._statement

    def _text(self, compiled: SQLCompiler) -> str:
        return str(compiled)

    def _arguments(self, constants: dict[str, Any], order: Sequence[str]) -> Arguments:
        """Arguments by position if the driver needs an ``order``, by name otherwise."""
        if not order:
            return lambda values: constants | values
        return lambda values: tuple(map((constants | values).__getitem__, order))


class Each(Hot):
    """A statement for many rows of values: one run per row on SQLite, one for all on PostgreSQL.

    Args:
        columns: the names and types of the values in a row.
        statement: makes the statement from an object with one attribute per column. On SQLite
            these attributes are parameters; on PostgreSQL they are the columns of ``unnest``,
            which takes one binary array per column.
    """

    def __init__(
        self, columns: Sequence[ColumnClause[Any]], statement: Callable[[Any], Executable]
    ) -> None:
        # Without the prefix a name could collide: an UPDATE makes a parameter with the name of each
        # column that it sets.
        parameters = {c.name: bindparam(PREFIX + c.name, type_=c.type) for c in columns}
        super().__init__(statement(SimpleNamespace(**parameters)))
        self._columns, self._state = columns, statement
        self._names = [column.name for column in columns]

    def of_each(
        self, connection: Connection, many: Sequence[Sequence[Any]]
    ) -> Callable[[], list[Any]]:
        """Runs the statement for all rows of values, each in the order of the columns.

        Returns a function that fetches the resulting rows. Call it after ``pipelined`` ends.
        """
        if not many:
            return list
        driver = driver_of(connection)
        sql, arguments = self.compiled(connection.dialect)
        if connection.dialect.name == "postgresql":
            arrays = map(list, zip(*many, strict=True))
            cursor = executed(driver, sql, arguments(dict(zip(self._names, arrays, strict=True))))
            return lambda: list(map(self._make, cursor.fetchall()))
        rows: list[Any] = []
        for values in many:
            cursor = executed(driver, sql, arguments(values))
            rows += map(self._make, cursor.fetchall())
        return lambda: rows

    def _arguments(self, constants: dict[str, Any], order: Sequence[str]) -> Arguments:
        if not order:
            return super()._arguments(constants, order)
        names, fixed = self._names, [name for name in constants if name not in self._names]
        places = [[*fixed, *names].index(name) for name in order]
        constant = [constants[name] for name in fixed]

        def arguments(values: Sequence[Any]) -> tuple[Any, ...]:
            if len(values) != len(names):
                raise ValueError(f"a row has {len(names)} values, got {len(values)}")
            return tuple(map((*constant, *values).__getitem__, places))

        return arguments

    def _for(self, dialect: Dialect) -> Executable:
        if dialect.name != "postgresql":
            return self._statement
        arrays = [bindparam(PREFIX + c.name, type_=ARRAY(c.type)) for c in self._columns]
        rows = func.unnest(*arrays).table_valued(
            *(column(c.name, c.type) for c in self._columns), name="each_row"
        )
        return self._state(rows.render_derived().c)

    def _text(self, compiled: SQLCompiler) -> str:
        return re.sub(rf"%\((?:{PREFIX})?(\w+)\)s", r"%(\1)b", str(compiled))


class InsertEach:
    """The INSERT of many rows into the columns ``names`` of one table.

    A row is left out if its values of the columns ``key`` exist; any other conflict is an error.
    """

    def __init__(self, table: Table, names: Sequence[str], key: Sequence[str] = ()) -> None:
        self._table, self._names, self._key = table, names, key
        self._texts: dict[str, str] = {}

    def insert(self, connection: Connection, many: Sequence[Sequence[Any]]) -> Callable[[], int]:
        """Inserts rows of values, each in the order of the columns.

        Returns a function that gives the number of inserted rows, after ``pipelined`` ends.
        """
        if not many:
            return int
        names, dialect = self._names, connection.dialect
        sql = self._texts.get(dialect.name)
        if sql is None:
            sql = self._texts[dialect.name] = self._text(dialect)
        driver = driver_of(connection)
        if dialect.name == "postgresql":
            columns = zip(names, map(list, zip(*many, strict=True)), strict=True)
            cursor = executed(driver, sql, dict(columns))
            return lambda: int(cursor.rowcount)
        inserted: int = executed(driver, sql, list(many)).rowcount
        return lambda: inserted

    def _text(self, dialect: Dialect) -> str:
        names = self._names
        if dialect.name == "postgresql":
            arrays = (f"%({n})b::{self._table.c[n].type.compile(dialect)}[]" for n in names)
            source = f"SELECT * FROM unnest({', '.join(arrays)})"
        else:
            source = f"VALUES ({', '.join('?' * len(names))})"
        conflict = f" ON CONFLICT ({', '.join(self._key)}) DO NOTHING" if self._key else ""
        return f"INSERT INTO {self._table.name} ({', '.join(names)}) {source}{conflict}"


def pipelined(connection: Connection) -> AbstractContextManager[Any]:
    """Sends the statements of a block to PostgreSQL without waiting for the results of each."""
    if connection.dialect.name == "postgresql":
        return driver_of(connection).pipeline()  # type: ignore[no-any-return]
    return nullcontext()


def executed(driver: Any, sql: str, arguments: Any = ()) -> Any:
    """The one place where a statement of the hot path meets the database.

    For a list of arguments, which only SQLite gets, the statement runs once with each of them.
    """
    if isinstance(arguments, list):
        return driver.executemany(sql, arguments)
    return driver.execute(sql, arguments)


def driver_of(connection: Connection) -> Any:
    """The driver's connection under ``connection``, inside the same transaction."""
    return connection.connection.driver_connection


def read_id(value: Any) -> UUID:
    """The UUID in a value that a driver returned: a UUID on PostgreSQL, bytes on SQLite."""
    return value if isinstance(value, UUID) else UUID(bytes=value)
