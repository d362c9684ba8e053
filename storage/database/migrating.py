"""Migrating the schema at start, under a lock, in one transaction."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine, inspect, text

from storage.database.expressions import MIGRATION_LOCK, lock_for_transaction
from storage.errors import UnusableDatabase

SCRIPTS = Path(__file__).parents[1] / "migrations"


def migrate(engine: Engine, lock_folder: Path) -> None:
    """Runs the missing migrations in one transaction.

    Processes that start concurrently wait for each other: on PostgreSQL by an advisory lock, on
    SQLite by a lock file, because its change to a write-ahead log cannot wait for other processes.
    Raises: UnusableDatabase if the schema is newer than this code.
    """
    if engine.dialect.name == "sqlite":
        with _file_lock(lock_folder / "migration.lock"):
            _upgrade(engine)
    else:
        _upgrade(engine)


def _upgrade(engine: Engine) -> None:
    # The name of each migration script begins with its revision, so the sorted names give the order
    # of the revisions.
    revisions = sorted(path.name.partition("_")[0] for path in SCRIPTS.glob("versions/0*.py"))
    with engine.execution_options(writing=True).begin() as connection:
        if engine.dialect.name == "postgresql":
            # Another process may migrate for longer than the usual time limits of a session, so
            # they are turned off while this one waits.
            connection.execute(text("SET LOCAL lock_timeout = 0"))
            connection.execute(text("SET LOCAL statement_timeout = 0"))
        lock_for_transaction(connection, MIGRATION_LOCK)
        current = _revision(connection)
        if current not in {None, *revisions}:
            raise UnusableDatabase(
                f"the database has schema {current}, which is newer than this version knows; "
                "start the version that wrote it, or a later one"
            )
        if current != revisions[-1]:
            _run_scripts(connection)


def _revision(connection: Connection) -> str | None:
    """The revision of the schema; None for an empty database."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    revision: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return revision


def _run_scripts(connection: Connection) -> None:
    # Alembic is loaded for a migration only: it takes about 10 MB and a fifth of a second.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


@contextmanager
def _file_lock(path: Path) -> Iterator[None]:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
