"""Reading the whole database as it was at one moment, while others write."""

from collections import namedtuple
from collections.abc import Iterator
from contextlib import closing, contextmanager
from secrets import token_hex
from typing import Any

from sqlalchemy import Connection, Select, text

from storage.database.database import Database
from storage.database.failures import is_unavailable
from storage.database.statements import driver_of
from storage.errors import Busy

#: The rows per fetch: few enough to bound memory, enough to save round trips to the server.
ROWS_AT_ONCE = 500


@contextmanager
def snapshot(database: Database) -> Iterator[Connection]:
    """A transaction in which every statement sees the same moment; it only reads.

    Every read transaction of SQLite does so; PostgreSQL needs the level REPEATABLE READ.
    Raises: Busy if the database cannot be reached now.
    """
    try:
        with _snapshot(database) as connection:
            yield connection
    except Exception as error:
        # The error may be one that SQLAlchemy has not wrapped, because ``streamed`` uses the
        # driver's own cursors.
        if is_unavailable(error):
            raise Busy("the database cannot answer now") from error
        raise


@contextmanager
def _snapshot(database: Database) -> Iterator[Connection]:
    with database.engine.connect() as connection:
        if connection.dialect.name == "postgresql":
            connection = connection.execution_options(
                isolation_level="REPEATABLE READ", postgresql_readonly=True
            )
        with connection.begin():
            if connection.dialect.name == "postgresql":
                # A snapshot may be read for minutes, and the session is idle between two fetches.
                # So the time limits on statements and on idle transactions are off.
                for limit in ("statement_timeout", "idle_in_transaction_session_timeout"):
                    connection.execute(text(f"SET LOCAL {limit} = 0"))
            yield connection


def named(statement: Select[Any]) -> Any:
    """Makes a row of ``streamed`` a named tuple, with the names of the statement's columns."""
    record: Any = namedtuple("Record", statement.selected_columns.keys())  # type: ignore[misc]
    return record._make


def streamed(connection: Connection, statement: Select[Any]) -> Iterator[tuple[Any, ...]]:
    """The rows of a statement as tuples of the driver, a few hundred in memory at a time.

    SQLAlchemy's own rows would double the time of a verification.
    """
    dialect, driver = connection.dialect, driver_of(connection)
    sql = str(statement.compile(dialect=dialect, compile_kwargs={"literal_binds": True}))
    # On PostgreSQL a cursor with a name stays in the server, which sends only the rows of one
    # fetch. Without a name it would send all rows, which may not fit the memory.
    cursor = driver.cursor(token_hex(8)) if dialect.name == "postgresql" else driver.cursor()
    with closing(cursor):
        cursor.execute(sql)
        while rows := cursor.fetchmany(ROWS_AT_ONCE):
            yield from rows
