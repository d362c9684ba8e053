"""Transactions: what is tried again, what is not, and that writers queue."""

from __future__ import annotations

import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, event, select, text, update
from sqlalchemy.exc import IntegrityError, OperationalError

from storage.database import database as database_module
from storage.database.database import ATTEMPTS, Again, Database
from storage.database.expressions import now_us
from storage.database.tables import users
from storage.errors import Busy, CommitUnknown
from tests.support.patience import PATIENCE
from tests.support.world import World


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_module.time, "sleep", lambda _seconds: None)


def test_a_lost_race_is_run_again_from_the_start(world: World) -> None:
    tries: list[int] = []

    def work(connection: Connection) -> str:
        connection.execute(update(users).values(disabled=1))
        tries.append(connection.execute(select(users.c.id)).scalars().all()[0])
        if len(tries) < 3:
            raise Again
        return "done"

    assert world.database.write(work) == "done"
    assert len(tries) == 3


def test_a_race_lost_five_times_is_given_up(database: Database) -> None:
    tries = []

    def work(_connection: Connection) -> None:
        tries.append(1)
        raise Again

    with pytest.raises(Busy):
        database.write(work)
    assert len(tries) == ATTEMPTS


def test_an_error_rolls_back_and_is_not_repeated(world: World) -> None:
    tries = []

    def work(connection: Connection) -> None:
        tries.append(1)
        connection.execute(update(users).values(disabled=1))
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError):
        world.database.write(work)
    assert len(tries) == 1
    assert world.users.find("admin").disabled is False  # type: ignore[union-attr]


def test_a_duplicate_is_an_error_not_an_alarm(world: World) -> None:
    duplicate = users.insert().values(name="admin", created_us=0)
    with pytest.raises(IntegrityError):
        world.database.write(lambda connection: connection.execute(duplicate))


def test_errors_do_not_carry_what_was_written(world: World) -> None:
    duplicate = users.insert().values(id=1, name="something private", created_us=0)
    with pytest.raises(IntegrityError) as raised:
        world.database.write(lambda connection: connection.execute(duplicate))
    assert "private" not in str(raised.value).split("DETAIL")[0]


def test_the_clock_moves_inside_a_transaction(database: Database) -> None:
    def work(connection: Connection) -> tuple[int, int]:
        first = connection.execute(select(now_us())).scalar_one()
        threading.Event().wait(0.01)
        return first, connection.execute(select(now_us())).scalar_one()

    first, second = database.write(work)
    assert 10_000 <= second - first < 60_000_000
    assert abs(database.now_us() - time.time() * 1e6) < 60e6


def test_ready_says_whether_it_answers(database: Database) -> None:
    assert database.ready()
    broken = text("ALTER TABLE budget_account RENAME TO elsewhere")
    database.write(lambda connection: connection.execute(broken))
    assert not database.ready()
    mended = text("ALTER TABLE elsewhere RENAME TO budget_account")
    database.write(lambda connection: connection.execute(mended))
    assert database.ready()


class TestUnknownCommit:
    def test_a_commit_that_dies_is_never_repeated(self, world: World) -> None:
        tries = []

        def work(_connection: Connection) -> None:
            tries.append(1)

        def dying(_connection: Any) -> None:
            gone = sqlite3.OperationalError("disk I/O error")
            raise OperationalError("COMMIT", None, gone, connection_invalidated=True)

        event.listen(world.database.engine, "commit", dying)
        with pytest.raises(CommitUnknown):
            world.database.write(work)
        event.remove(world.database.engine, "commit", dying)
        assert len(tries) == 1


class TestSqlite:
    @pytest.fixture
    def kind(self) -> str:
        return "sqlite"

    def test_another_process_that_writes_is_waited_for(
        self, database: Database, tmp_path: Path
    ) -> None:
        other = sqlite3.connect(tmp_path / "privypurse.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with ThreadPoolExecutor(1) as threads:
            waiting = threads.submit(database.write, lambda _connection: "done")
            with pytest.raises(TimeoutError):
                waiting.result(0.1)
            other.execute("COMMIT")
            assert waiting.result(60) == "done"
        other.close()

    def test_closing_waits_for_a_transaction_of_another_thread(
        self, database: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """SQLite calls it a misuse to close a connection under a statement."""
        monkeypatch.setattr("storage.database.database.CLOSING_SECONDS", PATIENCE)
        transaction = database.begin(wait=True)
        with ThreadPoolExecutor(1) as threads:
            closing = threads.submit(database.close)
            with pytest.raises(TimeoutError):
                closing.result(0.1)
            number = transaction.run(lambda connection: connection.execute(text("SELECT 7")))
            assert number.scalar_one() == 7
            transaction.commit()
            closing.result(60)

    def test_a_lock_that_never_ends_is_busy(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("storage.database.sqlite.BUSY_SECONDS", 0.01)
        database = Database.open(f"sqlite:///{tmp_path}/privypurse.db", tmp_path)
        other = sqlite3.connect(tmp_path / "privypurse.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Busy):
            database.write(lambda _connection: None)
        other.close()
        database.close()

    def test_readers_do_not_wait_for_a_writer(self, world: World) -> None:
        inside, go_on = threading.Event(), threading.Event()

        def slow(connection: Connection) -> None:
            connection.execute(update(users).values(disabled=1))
            inside.set()
            assert go_on.wait(60)

        with ThreadPoolExecutor(1) as threads:
            writing = threads.submit(world.database.write, slow)
            assert inside.wait(60)
            assert world.users.find("admin").disabled is False  # type: ignore[union-attr]
            go_on.set()
            writing.result(60)
        assert world.users.find("admin").disabled is True  # type: ignore[union-attr]

    def test_many_more_threads_than_connections(self, world: World) -> None:
        with ThreadPoolExecutor(64) as threads:
            result = threads.map(lambda _i: world.users.find("admin"), range(256))
            assert all(user is not None for user in result)


class TestPostgresql:
    pytestmark = pytest.mark.postgres

    @pytest.fixture
    def kind(self) -> str:
        return "postgresql"

    def test_every_connection_has_limits(self, database: Database) -> None:
        with database.read() as connection:
            text = {
                name: connection.exec_driver_sql(f"SHOW {name}").scalar_one()
                for name in (
                    "statement_timeout",
                    "lock_timeout",
                    "idle_in_transaction_session_timeout",
                    "transaction_isolation",
                    "synchronous_commit",
                )
            }
        assert text == {
            "statement_timeout": "15s",
            "lock_timeout": "5s",
            "idle_in_transaction_session_timeout": "15s",
            "transaction_isolation": "read committed",
            "synchronous_commit": "on",
        }

    def test_a_deadlock_is_resolved_by_running_again(self, world: World) -> None:
        meeting = threading.Barrier(2)
        tries = []

        def work(first: str, second: str) -> None:
            def inside(connection: Connection) -> None:
                tries.append(first)
                for name in (first, second):
                    taken = update(users).where(users.c.name == name).values(disabled=0)
                    connection.execute(taken)
                    if name == first and len(tries) <= 2:
                        meeting.wait(60)

            world.database.write(inside)

        with ThreadPoolExecutor(2) as threads:
            both = [
                threads.submit(work, "admin", "olga"),
                threads.submit(work, "olga", "admin"),
            ]
            for one in both:
                one.result(60)
        assert len(tries) > 2  # the transaction that loses the deadlock runs again, maybe twice

    def test_a_killed_connection_before_commit_is_run_again(self, world: World) -> None:
        tries = []

        def work(connection: Connection) -> int:
            tries.append(1)
            connection.execute(update(users).values(disabled=1))
            if len(tries) == 1:
                mine = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
                with world.database.engine.connect() as other:
                    other.execute(text("SELECT pg_terminate_backend(:mine)"), {"mine": mine})
            return len(connection.execute(select(users.c.id)).all())

        assert world.database.write(work) == 2
        assert len(tries) == 2

    def test_a_statement_that_takes_too_long_is_given_up(self, world: World) -> None:
        tries = []

        def work(connection: Connection) -> None:
            tries.append(1)
            connection.exec_driver_sql("SET LOCAL statement_timeout = 20")
            connection.exec_driver_sql("SELECT pg_sleep(10)")

        with pytest.raises(Busy):
            world.database.write(work)
        assert len(tries) == 1

    def test_a_server_that_dies_idle_is_reconnected_to(self, world: World) -> None:
        with world.database.engine.connect() as connection:
            connection.exec_driver_sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        assert world.users.find("admin") is not None
