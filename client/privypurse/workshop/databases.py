"""Reads one table or view of SQLite, DuckDB or PostgreSQL, without writing to it.

The table is chosen from the database's own listing, and its name is quoted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privypurse.frames import library
from privypurse.workshop.cell_texts import cell_text

SQLITE, DUCKDB, POSTGRESQL = "SQLite", "DuckDB", "PostgreSQL"
_FETCH = 4096
_SQLITE_TABLES = (
    "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
    " AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
)
_TABLES = (
    "SELECT table_schema || '.' || table_name FROM information_schema.tables"
    " WHERE table_schema NOT IN ('information_schema', 'pg_catalog') ORDER BY 1"
)


@dataclass(frozen=True)
class RawTable:
    """The names of the columns, and rows of as many texts, which can be read once."""

    names: list[str]
    rows: Iterable[list[str]]


@contextmanager
def read_database(form: str, source: str, table: str | None) -> Iterator[RawTable]:
    """A table of a database; see ``read_table``. The database is opened for reading only."""
    readers = {SQLITE: _sqlite, DUCKDB: _duckdb, POSTGRESQL: _postgresql}
    with readers[form](source, table) as read:
        yield read


def chosen(table: str | None, tables: Sequence[str], schema: str) -> str:
    """The entry of a listing that ``table`` names, where ``schema`` need not be written.

    Raises: ValueError, which lists the tables, if there is no such entry or a choice is needed.
    """
    if table is None and len(tables) == 1:
        return tables[0]
    for name in (table, f"{schema}.{table}"):
        if name is not None and name in tables:
            return name
    listing = ", ".join(tables) if tables else "there is none"
    if table is None:
        raise ValueError(f"add --table with one of: {listing}")
    raise ValueError(f"no table {table}; choose one of: {listing}")


def _quoted(*names: str) -> str:
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)


@contextmanager
def _sqlite(source: str, table: str | None) -> Iterator[RawTable]:
    sqlite3 = library("sqlite3")
    address = Path(source).resolve().as_uri() + "?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True)) as connection:
            tables = [name for (name,) in connection.execute(_SQLITE_TABLES)]
            name = chosen(table, tables, "main")
            with _cells(connection.execute(f"SELECT * FROM {_quoted(name)}")) as read:
                yield read
    except sqlite3.Error as error:
        raise ValueError(f"{source}: {error}") from None


@contextmanager
def _duckdb(source: str, table: str | None) -> Iterator[RawTable]:
    duckdb = library("duckdb")
    try:
        with closing(duckdb.connect(source, read_only=True)) as connection:
            tables = [name for (name,) in connection.execute(_TABLES).fetchall()]
            schema, _, name = chosen(table, tables, "main").partition(".")
            with _cells(connection.execute(f"SELECT * FROM {_quoted(schema, name)}")) as read:
                yield read
    except duckdb.Error as error:
        raise ValueError(f"{source}: {error}") from None


@contextmanager
def _postgresql(source: str, table: str | None) -> Iterator[RawTable]:
    psycopg = library("psycopg")
    try:
        with psycopg.connect(source, application_name="privypurse describe") as connection:
            connection.read_only = True
            tables = [name for (name,) in connection.execute(_TABLES).fetchall()]
            schema, _, name = chosen(table, tables, "public").partition(".")
            # A cursor on the server sends the table in pieces, so the table need not fit into
            # memory.
            with connection.cursor("records") as cursor:
                cursor.itersize = _FETCH
                cursor.execute(f"SELECT * FROM {_quoted(schema, name)}")
                with _cells(cursor) as read:
                    yield read
    except psycopg.Error as error:
        # The address may hold a password, so it is not repeated.
        raise ValueError(f"PostgreSQL: {str(error).strip()}") from None


@contextmanager
def _cells(cursor: Any) -> Iterator[RawTable]:
    names = [column[0] for column in cursor.description]
    yield RawTable(names, _rows(cursor))


def _rows(cursor: Any) -> Iterator[list[str]]:
    while rows := cursor.fetchmany(_FETCH):
        for row in rows:
            yield [cell_text(value) for value in row]
