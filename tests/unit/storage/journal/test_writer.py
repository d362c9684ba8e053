"""Group commit: everyone is told after the commit, nobody is told too much, nothing is lost."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager
from typing import Any

import pytest
from sqlalchemy import select, update

from accounting.errors import BudgetExhausted
from storage.database import database as database_module
from storage.database.failures import Again
from storage.database.statements import Hot
from storage.database.tables import users
from storage.errors import Busy, CommitUnknown, LedgerAlarm
from storage.journal.writer import MOST_INLINE, Writer
from storage.ledger import ledger
from storage.ledger.ledger import Reservation, Reserve
from tests.support.world import World, check_invariants, contents, loss, request

LOOP = threading.main_thread().name


class FakeDatabase:
    """Doubles numbers, and notes each batch and the threads that ran and committed it.

    ``go_on`` holds every commit up. ``unwritable`` is what -1 in a batch raises, ``commit_error``
    what its commit does; while ``is_locked``, no transaction begins without waiting.
    """

    def __init__(self, embedded: bool) -> None:
        self.embedded, self.is_locked = embedded, False
        self.batches: list[list[int]] = []
        self.ran_in: list[str] = []
        self.committed_in: list[str] = []
        self.alarms: list[Any] = []
        self.at_disk, self.go_on = threading.Event(), threading.Event()
        self.go_on.set()
        self.unwritable: Exception | None = None
        self.commit_error: Exception | None = None
        self._members: Sequence[int] = ()

    def run_members(self, _connection: Any, members: Sequence[int]) -> list[int | Exception]:
        self.batches.append(list(members))
        self._members = members
        self.ran_in.append(threading.current_thread().name)
        if self.unwritable is not None and -1 in members:
            raise self.unwritable
        return [ValueError(n) if n > 100 else 2 * n for n in members]

    def begin(self, *, wait: bool) -> FakeDatabase:
        if self.is_locked and not wait:
            raise Again
        return self

    def run(self, work: Callable[[Any], Any]) -> Any:
        return work(None)

    def commit(self) -> None:
        self.committed_in.append(threading.current_thread().name)
        self.at_disk.set()
        assert self.go_on.wait(60)
        if self.commit_error is not None and -1 in self._members:
            raise self.commit_error

    def write(self, work: Callable[[Any], Any]) -> Any:
        value = self.begin(wait=True).run(work)
        self.commit()
        return value


@pytest.fixture(params=[True, False], ids=["embedded", "server"])
def fake(request: pytest.FixtureRequest) -> FakeDatabase:
    return FakeDatabase(request.param)


@asynccontextmanager
async def writing(fake: FakeDatabase) -> AsyncIterator[Writer]:
    writer = Writer(fake, fake.run_members, fake.alarms.append)  # type: ignore[arg-type]
    yield writer
    fake.go_on.set()
    await asyncio.to_thread(writer.close)


def gathered(fake: FakeDatabase, *members: Any) -> list[Any]:
    """The outcomes of members that all wait while a first batch is at the disk."""

    async def run() -> list[Any]:
        async with writing(fake) as writer:
            fake.go_on.clear()
            first = asyncio.ensure_future(writer.run(0))
            assert await asyncio.to_thread(fake.at_disk.wait, 60)
            rest = asyncio.gather(*map(writer.run, members), return_exceptions=True)
            await asyncio.sleep(0)
            fake.go_on.set()
            assert await first == 0
            return await rest

    return asyncio.run(run())


def test_what_comes_during_a_commit_goes_together(fake: FakeDatabase) -> None:
    assert gathered(fake, *range(1, 9)) == [2 * n for n in range(1, 9)]
    assert [len(batch) for batch in fake.batches] == [1, 8]


def test_a_server_is_waited_for_in_a_thread_and_an_embedded_one_at_its_commit_alone(
    fake: FakeDatabase,
) -> None:
    gathered(fake, 1)
    assert fake.ran_in == ([LOOP] * 2 if fake.embedded else ["writer_0"] * 2)
    assert fake.committed_in == ["commit_0" if fake.embedded else "writer_0"] * 2


def test_what_cannot_begin_without_waiting_waits_in_a_thread() -> None:
    fake = FakeDatabase(embedded=True)
    fake.is_locked = True
    assert gathered(fake, 1) == [2]
    assert fake.ran_in == fake.committed_in == ["writer_0"] * 2


def test_a_refusal_is_raised_to_its_member_alone(fake: FakeDatabase) -> None:
    one, refused, two = gathered(fake, 1, 101, 2)
    assert (one, two) == (2, 4)
    assert isinstance(refused, ValueError)
    assert len(fake.batches) == 2


@pytest.mark.parametrize("kind", [LedgerAlarm, RuntimeError])
def test_an_unexpected_error_runs_the_others_alone(
    fake: FakeDatabase, kind: type[Exception]
) -> None:
    fake.unwritable = kind("unexpected")
    outcomes = gathered(fake, 1, -1, 2)
    assert outcomes[0] == 2
    assert outcomes[2] == 4
    assert isinstance(outcomes[1], kind)
    assert fake.batches == [[0], [1, -1, 2], [1], [-1], [2]]
    assert fake.alarms == ([-1] if kind is LedgerAlarm else [])


@pytest.mark.parametrize("kind", [CommitUnknown, Busy])
def test_nobody_is_told_more_than_is_known(fake: FakeDatabase, kind: type[Exception]) -> None:
    fake.commit_error = kind("unknown")
    outcomes = gathered(fake, 1, -1, 2)
    assert [type(outcome) for outcome in outcomes] == [kind] * 3
    assert len({id(outcome) for outcome in outcomes}) == 3, "each waiter has its own traceback"
    assert len(fake.batches) == 2, "an unknown commit is never repeated"


def test_another_transaction_runs_alone_and_in_a_thread(fake: FakeDatabase) -> None:
    async def run() -> list[Any]:
        async with writing(fake) as writer:
            name = writer.alone(lambda: threading.current_thread().name)
            return await asyncio.gather(writer.run(1), name)

    assert asyncio.run(run()) == [2, "writer_0"]
    assert fake.batches == [[1]]


def test_another_transaction_is_finished_without_its_caller(fake: FakeDatabase) -> None:
    began, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def call() -> None:
        began.set()
        assert go_on.wait(60)
        ended.set()

    async def run() -> None:
        async with writing(fake) as writer:
            gone = asyncio.ensure_future(writer.alone(call))
            assert await asyncio.to_thread(began.wait, 60)
            gone.cancel()
            go_on.set()

    asyncio.run(run())
    assert ended.is_set()


def test_closing_drains(fake: FakeDatabase) -> None:
    async def run() -> None:
        async with writing(fake) as writer:
            fake.go_on.clear()
            begun = asyncio.ensure_future(writer.run(1))
            assert await asyncio.to_thread(fake.at_disk.wait, 60)
            closing = asyncio.create_task(asyncio.to_thread(writer.close))
            while not writer._closed:
                await asyncio.sleep(0)
            fake.go_on.set()
            await closing
            assert await begun == 2
            with pytest.raises(Busy):
                await writer.run(1)
            with pytest.raises(Busy):
                await writer.alone(lambda: None)

    asyncio.run(run())


def test_what_was_begun_before_the_end_is_ended() -> None:
    fake = FakeDatabase(embedded=True)

    async def run() -> None:
        async with writing(fake) as writer:
            begin = fake.begin

            def closing(*, wait: bool) -> FakeDatabase:
                writer.close()
                return begin(wait=wait)

            fake.begin = closing  # type: ignore[method-assign]
            assert await writer.run(1) == 2

    asyncio.run(run())
    assert fake.committed_in == [LOOP]


def test_hundreds_wait_without_a_thread_each(fake: FakeDatabase) -> None:
    before = threading.active_count()
    assert gathered(fake, *(n % 100 for n in range(400))) == [2 * (n % 100) for n in range(400)]
    assert len(fake.batches) < 10
    assert threading.active_count() <= before


def test_who_goes_away_changes_nothing(fake: FakeDatabase) -> None:
    async def run() -> int:
        async with writing(fake) as writer:
            fake.go_on.clear()
            gone = asyncio.ensure_future(writer.run(1))
            stays = asyncio.ensure_future(writer.run(2))
            await asyncio.sleep(0.01)
            gone.cancel()
            fake.go_on.set()
            return int(await stays)

    assert asyncio.run(run()) == 4


def test_nobody_waits_for_ever(fake: FakeDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    def unforeseen(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(Writer, "_committed", unforeseen)
    (outcome,) = asyncio.run(_one(fake))
    assert isinstance(outcome, MemoryError)


async def _one(fake: FakeDatabase) -> list[Any]:
    async with writing(fake) as writer:
        return list(await asyncio.gather(writer.run(1), return_exceptions=True))


async def ask(world: World, requests: Sequence[Reserve]) -> list[Any]:
    waiting = map(world.ledger.ledger.reserve, requests)
    return await asyncio.gather(*waiting, return_exceptions=True)


class TestEmbedded:
    """Statements of SQLite on the loop, commits in a thread."""

    @pytest.fixture
    def kind(self) -> str:
        return "sqlite"

    @pytest.fixture
    def threads(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """The thread that each batch ran in."""
        seen: list[str] = []
        run = ledger.reserve_all

        def noted(*arguments: Any) -> Any:
            seen.append(threading.current_thread().name)
            return run(*arguments)

        monkeypatch.setattr(ledger, "reserve_all", noted)
        return seen

    def test_what_is_ready_together_goes_together_and_runs_on_the_loop(
        self, world: World, threads: list[str]
    ) -> None:
        dataset, analyst = world.ready(loss(100))
        requests = [request(dataset, analyst, key=f"k{n}") for n in range(2 * MOST_INLINE)]
        outcomes = asyncio.run(ask(world, requests))
        assert all(isinstance(outcome, Reservation) for outcome in outcomes)
        assert threads == [LOOP] * 2
        check_invariants(world.database)

    def test_the_loop_goes_on_while_the_disk_is_waited_for(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        dataset, analyst = world.ready(loss(1))
        commit = database_module._commit
        begun, go_on = threading.Event(), threading.Event()

        def slow(transaction: Any) -> None:
            begun.set()
            assert go_on.wait(60)
            commit(transaction)

        async def run() -> Any:
            asking = asyncio.ensure_future(ask(world, [request(dataset, analyst)]))
            while not begun.is_set():
                await asyncio.sleep(0.001)
            await asyncio.sleep(0.05)
            assert not asking.done()
            go_on.set()
            return await asking

        monkeypatch.setattr(database_module, "_commit", slow)
        (outcome,) = asyncio.run(run())
        assert isinstance(outcome, Reservation)

    def test_another_transaction_of_this_process_is_waited_for_in_a_thread(
        self, world: World, threads: list[str]
    ) -> None:
        dataset, analyst = world.ready(loss(1))

        async def run() -> Any:
            with world.database._write_lock:
                asking = asyncio.ensure_future(ask(world, [request(dataset, analyst)]))
                await asyncio.sleep(0.05)
                assert not asking.done()
            return await asking

        (outcome,) = asyncio.run(run())
        assert isinstance(outcome, Reservation)
        assert threads == ["writer_0"]

    def test_another_process_is_waited_for_in_a_thread(
        self, world: World, threads: list[str]
    ) -> None:
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
        assert threads == ["writer_0"]
        # The other process has ended its transaction, so the next batch runs on the event loop
        # again.
        asyncio.run(ask(world, [request(dataset, analyst)]))
        assert threads[-1] == LOOP

    def test_a_commit_that_was_refused_is_run_again(
        self, world: World, threads: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        dataset, analyst = world.ready(loss(1))
        commit = database_module._commit
        refused: list[int] = []

        def busy_once(transaction: Any) -> None:
            if not refused:
                refused.append(1)
                raise Again
            commit(transaction)

        monkeypatch.setattr(database_module, "_commit", busy_once)
        (outcome,) = asyncio.run(ask(world, [request(dataset, analyst)]))
        assert isinstance(outcome, Reservation)
        assert threads == [LOOP, "writer_0"]
        assert world.charged(dataset, analyst)[0] == loss("0.1")
        check_invariants(world.database)

    def test_an_unknown_commit_gives_up_its_connection(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        dataset, analyst = world.ready(loss(1))
        asyncio.run(ask(world, [request(dataset, analyst)]))
        before = world.database._writer
        commit = database_module._commit

        def dying(transaction: Any) -> None:
            commit(transaction)
            raise CommitUnknown("the disk is gone")

        with monkeypatch.context() as patch:
            patch.setattr(database_module, "_commit", dying)
            (outcome,) = asyncio.run(ask(world, [request(dataset, analyst)]))
        assert isinstance(outcome, CommitUnknown)
        assert world.database._writer is None
        (outcome,) = asyncio.run(ask(world, [request(dataset, analyst)]))
        assert isinstance(outcome, Reservation)
        assert world.database._writer not in (None, before)
        check_invariants(world.database)

    def test_two_loops_let_each_other_pass(self, world: World) -> None:
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

    def test_what_comes_after_the_end_is_refused(self, world: World) -> None:
        dataset, analyst = world.ready(loss(1))
        world.database.close()
        (outcome,) = asyncio.run(ask(world, [request(dataset, analyst)]))
        assert isinstance(outcome, Busy)


class TestTransaction:
    """A transaction of SQLite that is begun in one thread and committed in another."""

    @pytest.fixture
    def kind(self) -> str:
        return "sqlite"

    def test_what_fails_leaves_nothing_and_frees_the_lock(self, world: World) -> None:
        before = contents(world.database)

        def work(connection: Any) -> None:
            connection.execute(update(users).values(disabled=1))
            raise ValueError

        with pytest.raises(ValueError):
            world.database.begin(wait=False).run(work)
        assert contents(world.database) == before
        assert world.database.write(lambda _: 3) == 3

    def test_nothing_stands_before_the_commit(self, world: World) -> None:
        before = contents(world.database)

        def work(connection: Any) -> int:
            connection.execute(update(users).values(disabled=1))
            return 7

        transaction = world.database.begin(wait=False)
        assert transaction.run(work) == 7
        assert contents(world.database) == before
        with pytest.raises(Again):
            world.database.begin(wait=False)
        transaction.commit()
        assert contents(world.database) != before

    def test_it_waits_for_no_connection(self, world: World) -> None:
        """Nor does a look-up: an event loop would stand still for as long as threads have them."""
        world.database._drop_writer()
        world.database._readers.clear()
        with ExitStack() as connections:
            for _ in range(16 + 112):
                connections.enter_context(world.database.engine.connect())
            assert world.database.look_up(Hot(select(users.c.id)))
            world.database.begin(wait=False).commit()

    @pytest.mark.parametrize(
        ("message", "code", "kind_of_error"),
        [
            ("database or disk is full", sqlite3.SQLITE_FULL, CommitUnknown),
            ("database is locked", sqlite3.SQLITE_BUSY, Again),
        ],
    )
    def test_a_commit_that_fails_is_unknown_unless_it_was_refused(
        self, world: World, message: str, code: int, kind_of_error: type[Exception]
    ) -> None:
        def fails(_dialect: Any, _connection: Any = None) -> None:
            error = sqlite3.OperationalError(message)
            error.sqlite_errorcode = code
            raise error

        before = contents(world.database)
        transaction = world.database.begin(wait=False)
        transaction.run(lambda connection: connection.execute(update(users).values(disabled=1)))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(world.database.engine.dialect, "do_commit", fails)
            with pytest.raises(kind_of_error):
                transaction.commit()
        assert contents(world.database) == before, "the connection is gone, and its work with it"
        assert world.database.write(lambda _: 3) == 3


class TestOnTheLedger:
    """Batches of real reserves."""

    def sizes(self, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        sizes: list[int] = []
        run = ledger.reserve_all

        def counted(connection: Any, members: Any, lease_us: int) -> Any:
            sizes.append(len(members))
            return run(connection, members, lease_us)

        monkeypatch.setattr(ledger, "reserve_all", counted)
        return sizes

    async def together(self, world: World, requests: Sequence[Reserve]) -> list[Any]:
        return await asyncio.gather(
            *map(world.ledger.ledger.reserve, requests), return_exceptions=True
        )

    def test_a_refused_member_leaves_nothing_behind(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        dataset, analyst = world.ready(loss(1), loss(5))
        other = world.analyst()
        world.grant(dataset, other, loss(10))
        requested = []
        for n in range(60):
            # Each request is granted, refused by the analyst's account, or refused by the cap of
            # the dataset after the analyst's account was charged.
            requested.append(request(dataset, analyst, loss("0.3"), key=f"a{n}"))
            requested.append(request(dataset, other, loss(1), key=f"b{n}"))
        sizes = self.sizes(monkeypatch)
        outcomes = asyncio.run(self.together(world, requested))
        # All 120 requests arrive together, so a batch contains many of them.
        assert max(sizes) > 10
        granted = [o.query_id for o in outcomes if isinstance(o, Reservation)]
        assert {type(o).__name__ for o in outcomes} == {
            "Reservation",
            "BudgetExhausted",
            "CapExhausted",
        }
        stored = [row[0] for row in contents(world.database)["query"]]
        assert sorted(stored) == sorted(granted)
        check_invariants(world.database)

    def test_one_that_cannot_be_written_does_not_take_the_others_along(self, world: World) -> None:
        dataset, analyst = world.ready(loss(100))
        requested = [request(dataset, analyst, key=f"k{n}") for n in range(20)]
        twin = request(dataset, analyst, key="twin")
        # This request has the id of another query. So the primary key refuses its row, an error for
        # which the ledger has no reply of its own.
        object.__setattr__(twin, "query_id", requested[3].query_id)
        outcomes = asyncio.run(self.together(world, [*requested, twin]))
        assert [isinstance(outcome, Reservation) for outcome in outcomes] == [True] * 20 + [False]
        assert not isinstance(outcomes[-1], BudgetExhausted)
        assert world.charged(dataset, analyst)[0] == loss(2)
        check_invariants(world.database)

    def test_an_unknown_commit_tells_no_member_anything(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        dataset, analyst = world.ready(loss("0.5"))

        def dying(transaction: Any) -> None:
            transaction.commit()
            raise CommitUnknown("the connection died")

        monkeypatch.setattr(database_module, "_commit", dying)
        requested = [request(dataset, analyst) for _ in range(10)]
        outcomes = asyncio.run(self.together(world, requested))
        # It is unknown whether the commit succeeded. So no request gets even a refusal, because a
        # refusal may rest on charges that were not stored.
        assert [type(outcome) for outcome in outcomes] == [CommitUnknown] * 10
