"""Expressions whose SQL differs between SQLite and PostgreSQL."""

from functools import cache
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Connection, LargeBinary, Table, select, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement


class now_us(FunctionElement[int]):
    """Microseconds since 1970 by the database's clock now, not at the start of the transaction."""

    type = BigInteger()
    inherit_cache = True


class uuid_bytes(FunctionElement[bytes]):
    """The 16 bytes of a UUID column, which are faster to read by the million than UUID objects."""

    type = LargeBinary()
    inherit_cache = True


@compiles(uuid_bytes)
def _bytes(element: uuid_bytes, compiler: SQLCompiler, **options: Any) -> str:
    column = compiler.process(element.clauses, **options)
    return f"uuid_send({column})" if compiler.dialect.name == "postgresql" else column


@compiles(now_us)
def _now(_element: now_us, compiler: SQLCompiler, **_options: Any) -> str:
    if compiler.dialect.name == "postgresql":
        return "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
    return "now_us()"  # this SQL function is registered by ``storage.database.sqlite``


def read_now(connection: Connection) -> int:
    """The value of ``now_us`` in this transaction."""
    return connection.execute(select(now_us())).scalar_one()


@cache
def insert_once(
    dialect: str, table: Table, *conflict: str, where: ColumnElement[bool] | None = None
) -> postgresql.Insert | sqlite.Insert:
    """INSERT that does nothing and returns no row if the values of columns ``conflict`` exist.

    ``where`` is the condition of the unique index, if that index is partial.
    """
    make = postgresql.insert if dialect == "postgresql" else sqlite.insert
    return make(table).on_conflict_do_nothing(index_elements=list(conflict), index_where=where)


#: The numbers of PostgreSQL's advisory locks, one per purpose.
MIGRATION_LOCK = 0x70757273_0001
USERS_LOCK = 0x70757273_0002


def lock_for_transaction(connection: Connection, number: int) -> None:
    """Locks ``number`` until the transaction ends; others that lock it wait.

    This does nothing on SQLite, whose write transactions never overlap.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": number})
