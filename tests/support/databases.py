"""Every test of the ledger runs on both databases; PostgreSQL skips where no server can start."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text

from storage.database.database import Database
from storage.database.tables import metadata
from tests.support.postgresql import postgresql_server
from tests.support.world import World

NUMBERS = count(1)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The URL of a running server."""
    with postgresql_server() as url:
        if url is None:
            pytest.skip("needs PostgreSQL: apt-get install postgresql")
        yield url


@pytest.fixture(scope="session")
def migrated(postgresql: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a database with the schema, shared by the tests one after the other."""
    with fresh(postgresql) as url:
        Database.open(url, tmp_path_factory.mktemp("lock")).close()
        yield url


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite file with the schema. Tests copy it, because a migration takes long."""
    folder = tmp_path_factory.mktemp("migrated")
    Database.open(f"sqlite:///{folder}/privypurse.db", folder).close()
    return folder / "privypurse.db"


def wipe(url: str) -> None:
    """Empty every table, with the triggers off that forbid deleting."""
    engine = create_engine(url)
    names = ", ".join(table.name for table in metadata.sorted_tables)
    with engine.begin() as connection:
        connection.execute(text("SET LOCAL session_replication_role = replica"))
        connection.execute(text(f"TRUNCATE {names} RESTART IDENTITY CASCADE"))
    engine.dispose()


class fresh:
    """A new database on the server, dropped at the end."""

    def __init__(self, server: str, options: str = "") -> None:
        self._options = options
        self._admin = create_engine(
            make_url(server).set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT"
        )
        self._server, self._name = server, f"test_{os.getpid()}_{next(NUMBERS)}"

    def __enter__(self) -> str:
        self._run(f"CREATE DATABASE {self._name} {self._options}")
        url = make_url(self._server).set(drivername="postgresql+psycopg", database=self._name)
        return url.render_as_string(hide_password=False)

    def __exit__(self, *_exception: object) -> None:
        self._run(f"DROP DATABASE {self._name} WITH (FORCE)")
        self._admin.dispose()

    def _run(self, statement: str) -> None:
        with self._admin.connect() as connection:
            connection.execute(text(statement))


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def kind(request: pytest.FixtureRequest) -> str:
    """Which database the test runs on."""
    return str(request.param)


@pytest.fixture
def empty_url(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a database without a schema."""
    if kind == "sqlite":
        yield f"sqlite:///{tmp_path}/privypurse.db"
        return
    with fresh(request.getfixturevalue("postgresql")) as url:
        yield url


@pytest.fixture
def url(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a database that has the schema and nothing else."""
    if kind == "sqlite":
        shutil.copy2(request.getfixturevalue("migrated_file"), tmp_path / "privypurse.db")
        yield f"sqlite:///{tmp_path}/privypurse.db"
        return
    shared = request.getfixturevalue("migrated")
    yield shared
    wipe(shared)


@pytest.fixture
def database(url: str, tmp_path: Path) -> Iterator[Database]:
    database = Database.open(url, tmp_path)
    yield database
    database.close()


@pytest.fixture
def world(database: Database, tmp_path: Path) -> World:
    return World(database, tmp_path)
