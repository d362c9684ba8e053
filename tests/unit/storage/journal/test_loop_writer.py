"""Statements on the loop, commits in a thread: nothing is waited for, nothing told too soon."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest
from sqlalchemy import select, update

from storage.database import database as database_module
from storage.database.statements import Hot
from storage.database.tables import users
from storage.errors import Busy, CommitUnknown
from storage.journal.loop_writer import MOST
from storage.journal.writer import Failed
from storage.ledger import batch
from storage.ledger.ledger import Reservation, Reserve
from tests.support.patience import PATIENCE
from tests.support.world import World, check_invariants, contents, loss, request


@pytest.fixture(autouse=True)
def embedded(world: World) -> None:
    if not world.database.embedded:
        pytest.skip("statements of this database wait for a server")


async def ask(world: World, requests: Sequence[Reserve]) -> list[Any]:
    waiting = map(world.ledger.reserve_async, requests)
    return await asyncio.gather(*waiting, return_exceptions=True)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The thread that each batch ran in."""
    seen: list[str] = []
    run = batch.run

    def noted(*arguments: Any) -> Any:
        seen.append(threading.current_thread().name)
        return run(*arguments)

    monkeypatch.setattr(batch, "run", noted)
    return seen


def test_what_is_ready_together_goes_together_and_runs_on_the_loop(
    world: World, threads: list[str]
) -> None:
    dataset, analyst = world.ready(loss(100))
    asked = [request(dataset, analyst, key=f"k{n}") for n in range(2 * MOST)]
    outcomes = asyncio.run(ask(world, asked))
    assert all(isinstance(outcome, Reservation) for outcome in outcomes)
    assert threads == [threading.main_thread().name] * 2
    check_invariants(world.database)


def test_nobody_is_told_before_the_commit(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset, analyst = world.ready(loss(1))
    commit = database_module._commit
    begun, go_on = threading.Event(), threading.Event()

    def slow(transaction: Any) -> None:
        begun.set()
        assert go_on.wait(PATIENCE)
        commit(transaction)

    async def run() -> Any:
        asking = asyncio.ensure_future(ask(world, [request(dataset, analyst)]))
        while not begun.is_set():
            await asyncio.sleep(0.001)  # the loop goes on while the disk is waited for
        await asyncio.sleep(0.05)
        assert not asking.done()
        go_on.set()
        return await asking

    monkeypatch.setattr(database_module, "_commit", slow)
    (outcome,) = asyncio.run(run())
    assert isinstance(outcome, Reservation)


def test_another_transaction_of_this_process_is_waited_for_in_a_thread(
    world: World, threads: list[str]
) -> None:
    dataset, analyst = world.ready(loss(1))

    async def run() -> Any:
        with world.database._turn:
            asking = asyncio.ensure_future(ask(world, [request(dataset, analyst)]))
            await asyncio.sleep(0.05)
            assert not asking.done()
        return await asking

    (outcome,) = asyncio.run(run())
    assert isinstance(outcome, Reservation)
    assert threads == ["turn_0"]


def test_another_process_is_waited_for_in_a_thread(world: World, threads: list[str]) -> None:
    dataset, analyst = world.ready(loss(1))
    path = world.database.engine.url.database
    assert path is not None
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    async def run() -> Any:
        asking = asyncio.ensure_future(ask(world, [request(dataset, analyst)]))
        await asyncio.sleep(0.05)
        assert not asking.done()
        other.execute("ROLLBACK")
        return await asking

    (outcome,) = asyncio.run(run())
    other.close()
    assert isinstance(outcome, Reservation)
    assert threads == ["turn_0"]
    # And the next one has the loop for itself again.
    asyncio.run(ask(world, [request(dataset, analyst)]))
    assert threads[-1] == threading.main_thread().name


def test_a_commit_that_was_refused_is_run_again(
    world: World, threads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset, analyst = world.ready(loss(1))
    commit, refused = database_module._commit, []

    def busy_once(transaction: Any) -> None:
        if not refused:
            refused.append(1)
            transaction.rollback()
            raise sqlite3.OperationalError("database is locked")
        commit(transaction)

    monkeypatch.setattr(database_module, "_commit", busy_once)
    (outcome,) = asyncio.run(ask(world, [request(dataset, analyst)]))
    assert isinstance(outcome, Reservation)
    assert len(threads) == 2
    assert world.charged(dataset, analyst)[0] == loss("0.1")
    check_invariants(world.database)


def test_an_unknown_commit_gives_up_its_connection(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset, analyst = world.ready(loss(1))
    asyncio.run(ask(world, [request(dataset, analyst)]))
    before = world.database._hasty
    commit = database_module._commit

    def dying(transaction: Any) -> None:
        commit(transaction)
        raise CommitUnknown("the disk is gone")

    with monkeypatch.context() as patch:
        patch.setattr(database_module, "_commit", dying)
        (outcome,) = asyncio.run(ask(world, [request(dataset, analyst)]))
    assert isinstance(outcome, CommitUnknown)
    assert world.database._hasty is None
    (outcome,) = asyncio.run(ask(world, [request(dataset, analyst)]))
    assert isinstance(outcome, Reservation)
    assert world.database._hasty not in (None, before)
    check_invariants(world.database)


class TestBegin:
    """The transaction that is begun in one thread and committed in another."""

    def test_what_fails_leaves_nothing_and_gives_the_turn_back(self, world: World) -> None:
        before = contents(world.database)

        def work(connection: Any) -> None:
            connection.execute(update(users).values(disabled=1))
            reached.append(1)
            raise ValueError

        reached: list[int] = []
        assert world.database.begin(work) is None
        assert reached
        assert contents(world.database) == before
        assert world.database.write(lambda _: 3) == 3

    def test_nothing_stands_before_the_commit(self, world: World) -> None:
        before = contents(world.database)

        def work(connection: Any) -> int:
            connection.execute(update(users).values(disabled=1))
            return 7

        commit = world.database.begin(work)
        assert commit is not None
        assert contents(world.database) == before
        assert world.database.begin(work) is None, "one at a time"
        assert commit() == 7
        assert contents(world.database) != before

    def test_it_waits_for_no_connection(self, world: World) -> None:
        """Nor does a look-up: an event loop would stand still for as long as threads have them."""
        world.database._drop_hasty()
        world.database._readers.clear()
        with ExitStack() as held:
            for _ in range(16 + 112):
                held.enter_context(world.database.engine.connect())
            assert world.database.look_up(Hot(select(users.c.id)))
            commit = world.database.begin(lambda _: 1)
            assert commit is not None
            assert commit() == 1

    def test_a_full_disk_is_an_unknown_commit(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        commit = world.database.begin(lambda _: 1)
        assert commit is not None

        def full(_: Any) -> None:
            raise sqlite3.OperationalError("database or disk is full")

        monkeypatch.setattr(database_module.DriverTransaction, "commit", full)
        with pytest.raises(CommitUnknown):
            commit()
        monkeypatch.undo()
        assert world.database.write(lambda _: 3) == 3

    def test_a_locked_database_is_busy(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        commit = world.database.begin(lambda _: 1)
        assert commit is not None

        def locked(_: Any) -> None:
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorcode = sqlite3.SQLITE_BUSY
            raise error

        monkeypatch.setattr(database_module.DriverTransaction, "commit", locked)
        with pytest.raises(Busy):
            commit()
        monkeypatch.undo()
        assert world.database.write(lambda _: 3) == 3


def test_refusals_are_outcomes_of_the_batch(world: World) -> None:
    dataset, analyst = world.ready(loss("0.5"))
    outcomes = asyncio.run(ask(world, [request(dataset, analyst) for _ in range(9)]))
    assert sum(isinstance(outcome, Reservation) for outcome in outcomes) == 5
    assert not any(isinstance(outcome, Failed) for outcome in outcomes)
    check_invariants(world.database)


def test_two_loops_let_each_other_pass(world: World) -> None:
    dataset, analyst = world.ready(loss(100))

    def loop(name: str) -> list[Any]:
        async def one_after_the_other() -> list[Any]:
            return [
                (await ask(world, [request(dataset, analyst, key=f"{name}{n}")]))[0]
                for n in range(60)
            ]

        return asyncio.run(one_after_the_other())

    with ThreadPoolExecutor(2) as loops:
        both = [loops.submit(loop, name) for name in "ab"]
        outcomes = [outcome for one in both for outcome in one.result(120)]
    assert all(isinstance(outcome, Reservation) for outcome in outcomes)
    check_invariants(world.database)


def test_what_was_begun_before_the_end_is_ended(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset, analyst = world.ready(loss(1))
    on_loop = world.ledger._run_async.__self__  # type: ignore[attr-defined]
    begin = on_loop._begin

    def closing(members: Any) -> Any:
        commit = begin(members)
        on_loop.close()
        return commit

    monkeypatch.setattr(on_loop, "_begin", closing)
    (outcome,) = asyncio.run(ask(world, [request(dataset, analyst)]))
    assert isinstance(outcome, Reservation)
    assert not world.database._turn.locked()
    check_invariants(world.database)


def test_nobody_waits_for_ever(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset, analyst = world.ready(loss(1))

    def unforeseen(_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(world.database, "begin", unforeseen)
    (outcome,) = asyncio.run(ask(world, [request(dataset, analyst)]))
    assert isinstance(outcome, MemoryError)


def test_what_comes_after_the_end_is_refused(world: World) -> None:
    dataset, analyst = world.ready(loss(1))
    world.database.close()
    (outcome,) = asyncio.run(ask(world, [request(dataset, analyst)]))
    assert isinstance(outcome, Busy)
