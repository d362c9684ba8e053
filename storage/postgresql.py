"""An engine on PostgreSQL: READ COMMITTED, with a limit on everything that could wait for ever."""

from __future__ import annotations

from typing import Any

from sqlalchemy import URL, Engine, create_engine, event

#: Milliseconds. A lock is waited for longer than any transaction of ours takes.
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
        hide_parameters=True,
    )
    event.listen(engine, "connect", _prepare)
    return engine


def _prepare(connection: Any, _record: Any) -> None:
    with connection.cursor() as cursor:
        for name, milliseconds in TIMEOUTS.items():
            cursor.execute(f"SET {name} = {milliseconds}")
        # An answer leaves after COMMIT returned, so COMMIT must mean "on disk"; a server that
        # promises more than that (remote_apply) keeps its promise.
        cursor.execute(
            "SELECT set_config('synchronous_commit', 'on', false) "
            "WHERE current_setting('synchronous_commit') IN ('off', 'local')"
        )
    connection.commit()
