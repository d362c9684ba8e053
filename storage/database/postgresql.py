"""An engine on PostgreSQL: READ COMMITTED, with a time limit on every wait."""

from typing import Any

from sqlalchemy import URL, Engine, create_engine, event

from storage.errors import UnusableDatabase

#: Time limits of a session in milliseconds. The limit for locks is longer than any transaction of
#: the service takes.
TIMEOUTS = {
    "statement_timeout": 15_000,
    "lock_timeout": 5_000,
    "idle_in_transaction_session_timeout": 15_000,
}


def postgresql_engine(url: URL) -> Engine:
    engine = create_engine(
        url.set(drivername="postgresql+psycopg"),
        isolation_level="READ COMMITTED",
        pool_size=16,
        max_overflow=48,
        pool_pre_ping=True,
        pool_use_lifo=True,
        hide_parameters=True,
    )
    # The encoding is checked before SQLAlchemy reads the server's version. A database in SQL_ASCII
    # sends bytes and no text, and SQLAlchemy fails on them without a clear message.
    event.listen(engine, "connect", _check_encoding, insert=True)
    event.listen(engine, "connect", _prepare)
    return engine


def _check_encoding(connection: Any, _record: Any) -> None:
    if connection.info.parameter_status("server_encoding") == "SQL_ASCII":
        raise UnusableDatabase(
            "the database has encoding SQL_ASCII, which is bytes and no text: name one that "
            "was made with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0"
        )


def _prepare(connection: Any, _record: Any) -> None:
    with connection.cursor() as cursor:
        for name, milliseconds in TIMEOUTS.items():
            cursor.execute(f"SET {name} = {milliseconds}")
        # An answer leaves after COMMIT has returned, so COMMIT must mean "on disk". A stronger
        # setting of the server, such as remote_apply, is kept.
        cursor.execute(
            "SELECT set_config('synchronous_commit', 'on', false) "
            "WHERE current_setting('synchronous_commit') IN ('off', 'local')"
        )
    connection.commit()
