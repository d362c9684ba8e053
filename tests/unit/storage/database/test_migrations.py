"""The schema comes up from nothing, once, and nothing but the migrations makes it."""

from __future__ import annotations

import stat
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from uuid import uuid4

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import delete, insert, text, update

from storage.database import tables
from storage.database.database import Database
from storage.database.tables import metadata
from storage.errors import LedgerAlarm, UnusableDatabase
from storage.ledger.ledger import Reservation
from tests.architecture.imports import ROOT
from tests.support.databases import fresh
from tests.support.workers import open_database
from tests.support.world import World, contents, loss, request


def test_migrations_make_what_tables_describe(database: Database) -> None:
    with database.read() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def test_opening_again_changes_nothing(empty_url: str, tmp_path: Path) -> None:
    first = Database.open(empty_url, tmp_path)
    World(first, tmp_path).ready()
    before = contents(first)
    first.close()
    second = Database.open(empty_url, tmp_path)
    assert contents(second) == before
    assert second.ready()
    second.close()


def test_a_current_schema_is_opened_without_alembic(empty_url: str, tmp_path: Path) -> None:
    """It takes 10 MB, which a service would hold as long as it runs."""
    Database.open(empty_url, tmp_path).close()
    code = (
        "import sys; from pathlib import Path; from storage.database.database import Database\n"
        "Database.open(sys.argv[1], Path(sys.argv[2])).close(); assert 'alembic' not in sys.modules"
    )
    run = [sys.executable, "-c", code, empty_url, str(tmp_path)]
    subprocess.run(run, cwd=ROOT, check=True)


def test_processes_that_start_at_once_migrate_once(empty_url: str, tmp_path: Path) -> None:
    with ProcessPoolExecutor(3, mp_context=get_context("spawn")) as pool:
        ready = list(pool.map(open_database, [empty_url] * 3, [str(tmp_path)] * 3))
    assert ready == [True] * 3


def test_a_newer_schema_is_refused_with_a_reason(empty_url: str, tmp_path: Path) -> None:
    database = Database.open(empty_url, tmp_path)
    newer = text("UPDATE alembic_version SET version_num = '9999'")
    database.write(lambda connection: connection.execute(newer))
    database.close()
    with pytest.raises(UnusableDatabase, match="schema 9999, which is newer"):
        Database.open(empty_url, tmp_path)


def test_sqlite_keeps_its_promises(tmp_path: Path) -> None:
    database = Database.open(f"sqlite:///{tmp_path}/x/privypurse.db", tmp_path)
    with database.read() as connection:
        pragmas = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
        created = connection.exec_driver_sql(
            "SELECT name, strict FROM pragma_table_list WHERE type = 'table' AND schema = 'main' "
            "AND name NOT LIKE 'sqlite_%' AND name <> 'alembic_version'"
        ).all()
    database.close()
    assert pragmas == {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "busy_timeout": 5000,
    }
    assert sorted(created) == sorted((table.name, 1) for table in metadata.sorted_tables)
    assert stat.S_IMODE((tmp_path / "x" / "privypurse.db").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "url",
    [
        "sqlite://",
        "sqlite:///:memory:",
        "mysql://localhost/x",
        "not a url",
        "postgresql://nobody@127.0.0.1:1/nowhere",
    ],
)
def test_unusable_databases_are_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(UnusableDatabase):
        Database.open(url, tmp_path)


@pytest.mark.postgres
def test_a_database_of_bytes_is_refused(postgresql: str, tmp_path: Path) -> None:
    options = "ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0"
    with fresh(postgresql, options) as url, pytest.raises(UnusableDatabase, match="'UTF8'"):
        Database.open(url, tmp_path)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "privypurse.db").write_bytes(b"this is not a database, not at all\n" * 100)
    with pytest.raises(UnusableDatabase):
        Database.open(f"sqlite:///{tmp_path}/privypurse.db", tmp_path)


class TestWalls:
    """What no statement of the service does, the database refuses as well."""

    CHANGES = (
        update(tables.entry).values(d_eps_n=0),
        delete(tables.entry),
        update(tables.journal).values(fact="{}"),
        delete(tables.journal),
        update(tables.journal_stream).values(seq=0),
        delete(tables.journal_stream),
        insert(tables.settlement).values(
            query_id=uuid4(), attempt=1, answer_hash=bytes(32), at_us=0
        ),
        insert(tables.audit).values(at_us=0, actor_id=0, action="x", subject="", detail="{}"),
        delete(tables.query),
        update(tables.query).values(answer=b"another answer"),
        update(tables.query).values(state=0, answer=None),
        delete(tables.budget_account),
        delete(tables.dataset),
        update(tables.budget_account).values(charged_eps_n=-1),
        update(tables.budget_account).values(lim_eps_n=1),
        update(tables.budget_account).values(charged_delta_a=1),
        update(tables.budget_account).values(rank=1),
        update(tables.budget_account).values(head=b"short"),
    )

    def test_it_is_refused_and_alarms(self, world: World) -> None:
        dataset, analyst = world.ready()
        reservation = world.ledger.reserve(request(dataset, analyst, loss("0.5")))
        assert isinstance(reservation, Reservation)
        assert world.ledger.settle(reservation, status=201, body=b"an answer", release_us=0)
        before = contents(world.database)
        for change in self.CHANGES:
            with pytest.raises(LedgerAlarm):
                world.database.write(lambda connection, change=change: connection.execute(change))
        assert contents(world.database) == before

    @pytest.mark.parametrize("kind", ["postgresql"], indirect=True)
    def test_truncating_is_refused(self, database: Database) -> None:
        append_only = (
            "entry",
            "settlement",
            "audit",
            "query",
            "budget_account",
            "dataset",
            "journal",
        )
        for table in (*append_only, "journal_stream"):
            with pytest.raises(LedgerAlarm):
                database.write(
                    lambda connection, table=table: connection.execute(
                        text(f"TRUNCATE {table} CASCADE")
                    )
                )

    def test_a_running_query_has_no_answer(self, world: World) -> None:
        dataset, analyst = world.ready()
        world.ledger.reserve(request(dataset, analyst))
        answered = update(tables.query).values(answer=uuid4().bytes)
        with pytest.raises(LedgerAlarm):
            world.database.write(lambda connection: connection.execute(answered))
