"""A PostgreSQL database, read as CSV by a role that the operator made for it.

Sessions are read-only and have a statement timeout. A table is chosen from the listing of what the
role may read, and its name and its columns are quoted by the driver.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from storage.errors import SourceFailed
from storage.sources.source import checked

if TYPE_CHECKING:
    from psycopg import Connection

#: Seconds to wait for a connection.
CONNECT_SECONDS = 10
#: A table is not listed if its name or its schema's has a dot, because nobody could tell which dot
#: of ``schema.table`` divides the two.
_TABLES = (
    "SELECT table_schema || '.' || table_name FROM information_schema.tables"
    " WHERE table_schema NOT IN ('information_schema', 'pg_catalog')"
    " AND position('.' IN table_schema) = 0 AND position('.' IN table_name) = 0"
    " AND has_table_privilege(format('%I.%I', table_schema, table_name), 'SELECT')"
    " ORDER BY 1"
)


class PostgreSQL:
    """The tables and views that the role of ``dsn`` may read, as ``schema.table``.

    Tables and schemas with a dot in their names are left out.

    ``statement_timeout``: seconds that one read may take.
    """

    media_type = "text/csv"

    def __init__(self, dsn: str, statement_timeout: float) -> None:
        self._dsn, self._timeout = dsn, statement_timeout

    def tables(self) -> list[str]:
        """The names of tables and views, sorted. Raises: SourceFailed."""
        with self._session() as connection:
            return _tables(connection)

    def read(self, table: str) -> Iterator[bytes]:
        """A table as CSV with a header; nulls are empty cells, and truth values true and false.

        Raises: SourceFailed.
        """
        from psycopg.sql import SQL, Identifier

        with self._session() as connection:
            schema, _, name = checked(table, _tables(connection)).partition(".")
            whole = Identifier(schema, name)
            rows = connection.execute(SQL("SELECT * FROM {} LIMIT 0").format(whole))
            # Columns are cast to text, because COPY would write truth values as t and f, and not as
            # true and false.
            columns = [
                SQL("{column}::text AS {column}").format(column=Identifier(column.name))
                for column in rows.description or ()
            ]
            copied = SQL("COPY (SELECT {} FROM {}) TO STDOUT WITH (FORMAT csv, HEADER)").format(
                SQL(", ").join(columns), whole
            )
            with connection.cursor().copy(copied) as copy:
                for chunk in copy:
                    yield bytes(chunk)

    @contextmanager
    def _session(self) -> Iterator[Connection]:
        import psycopg

        milliseconds = round(self._timeout * 1000)
        options = (
            f"-c statement_timeout={milliseconds} -c default_transaction_read_only=on"
            " -c DateStyle=ISO -c extra_float_digits=1"
        )
        try:
            with psycopg.connect(
                self._dsn,
                connect_timeout=CONNECT_SECONDS,
                options=options,
                application_name="privypurse source",
                client_encoding="UTF8",
            ) as connection:
                yield connection
        except psycopg.Error as error:
            # Danger: the message of the error may quote a cell, or the address. So only its class
            # and its SQLSTATE code are passed on.
            state = error.sqlstate or "no connection"
            raise SourceFailed(f"the source refused: {type(error).__name__} ({state})") from None


def _tables(connection: Connection) -> list[str]:
    return [name for (name,) in connection.execute(_TABLES).fetchall()]
