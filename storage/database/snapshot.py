"""One consistent look at the whole database, however long it takes and whatever is written."""

from collections import namedtuple
from collections.abc import Iterator
from contextlib import closing, contextmanager
from secrets import token_hex
from typing import Any

from sqlalchemy import Connection, Select, text

from storage.database.database import Database
from storage.database.statements import driver_of

#: Rows fetched at once: memory stays flat, and a server is not asked row by row.
ROWS_AT_ONCE = 500


@contextmanager
def snapshot(database: Database) -> Iterator[Connection]:
    """A transaction in which every statement sees the same moment; it only reads.

    SQLite's read transactions are that already; PostgreSQL's are from REPEATABLE READ on.
    """
    with database.engine.connect() as connection:
        if connection.dialect.name == "postgresql":
            connection = connection.execution_options(
                isolation_level="REPEATABLE READ", postgresql_readonly=True
            )
        with connection.begin():
            if connection.dialect.name == "postgresql":
                # It may take minutes, and rests between two batches while the last one is checked.
                for limit in ("statement_timeout", "idle_in_transaction_session_timeout"):
                    connection.execute(text(f"SET LOCAL {limit} = 0"))
            yield connection


def named(statement: Select[Any]) -> Any:
    """Makes a row of ``streamed`` a named tuple, with the names of the statement's columns."""
    record: Any = namedtuple("Record", statement.selected_columns.keys())  # type: ignore[misc]
    return record._make


def streamed(connection: Connection, statement: Select[Any]) -> Iterator[tuple[Any, ...]]:
    """The rows of a statement as the driver gives them, a few hundred in memory at a time.

    Without SQLAlchemy's rows, which take as long as all that is done with them.
    """
    dialect, driver = connection.dialect, driver_of(connection)
    sql = str(statement.compile(dialect=dialect, compile_kwargs={"literal_binds": True}))
    # A cursor with a name lives in the server, which sends no more than it is asked for.
    cursor = driver.cursor(token_hex(8)) if dialect.name == "postgresql" else driver.cursor()
    with closing(cursor):
        cursor.execute(sql)
        while rows := cursor.fetchmany(ROWS_AT_ONCE):
            yield from rows
