"""Migrating the schema at start, under a lock, in one transaction."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Engine, text

from storage.database.expressions import MIGRATION_LOCK, lock_for_transaction
from storage.errors import UnusableDatabase

if TYPE_CHECKING:
    from alembic.config import Config

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
    from alembic import command
    from alembic.runtime.migration import MigrationContext

    head, revisions = _revisions()
    with engine.execution_options(writing=True).begin() as connection:
        if engine.dialect.name == "postgresql":
            # Another process may migrate for longer than the usual time limits of a session, so
            # they are turned off while this one waits.
            connection.execute(text("SET LOCAL lock_timeout = 0"))
            connection.execute(text("SET LOCAL statement_timeout = 0"))
        lock_for_transaction(connection, MIGRATION_LOCK)
        current = MigrationContext.configure(connection).get_current_revision()
        if current not in {None, *revisions}:
            raise UnusableDatabase(
                f"the database has schema {current}, which is newer than this version knows; "
                "start the version that wrote it, or a later one"
            )
        if current != head:
            config = _config()
            config.attributes["connection"] = connection
            command.upgrade(config, "head")


@cache
def _revisions() -> tuple[str | None, frozenset[str]]:
    """The latest revision and all revisions; reading them takes longer than opening a database."""
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory.from_config(_config())
    revisions = frozenset(script.revision for script in scripts.walk_revisions())
    return scripts.get_current_head(), revisions


def _config() -> "Config":
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    return config


@contextmanager
def _file_lock(path: Path) -> Iterator[None]:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
