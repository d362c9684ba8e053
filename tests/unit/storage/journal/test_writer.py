"""Group commit: everyone is told after the commit, nobody is told too much, nothing is lost."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from accounting.errors import BudgetExhausted
from storage.database import database as database_module
from storage.errors import Busy, CommitUnknown, LedgerAlarm
from storage.journal.writer import Failed, Writer
from storage.ledger import batch
from storage.ledger.ledger import Reservation, Reserve
from tests.support.world import World, check_invariants, contents, loss, request


class Commits:
    """A database that doubles numbers, and notes which batches it was given."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.go_on.set()
        self.error: Exception | None = None

    def __call__(self, members: Sequence[int]) -> list[int | Failed]:
        self.batches.append(list(members))
        self.begun.set()
        assert self.go_on.wait(60)
        if self.error is not None and -1 in members:
            raise self.error
        return [Failed(ValueError(n)) if n > 100 else 2 * n for n in members]


@pytest.fixture
def commits() -> Commits:
    return Commits()


@pytest.fixture
def writer(commits: Commits) -> Any:
    writer = Writer(commits)
    yield writer
    commits.go_on.set()
    writer.close()


def gathered(writer: Writer[int, int], commits: Commits, members: Sequence[int]) -> list[Any]:
    """The outcomes of members that all wait while a first batch is at the disk."""
    commits.go_on.clear()
    with ThreadPoolExecutor(len(members) + 1) as threads:
        threads.submit(writer.run, 0)
        assert commits.begun.wait(60)
        futures = [threads.submit(writer.run, member) for member in members]
        while len(writer._queue) < len(members):
            pass
        commits.go_on.set()
        return [future.exception(60) or future.result() for future in futures]


def test_what_comes_during_a_commit_goes_together(writer: Any, commits: Commits) -> None:
    assert sorted(gathered(writer, commits, range(1, 9))) == [2 * n for n in range(1, 9)]
    assert [len(batch) for batch in commits.batches] == [1, 8]


def test_a_refusal_is_raised_to_its_member_alone(writer: Any, commits: Commits) -> None:
    one, refused, two = gathered(writer, commits, [1, 101, 2])
    assert (one, two) == (2, 4)
    assert isinstance(refused, ValueError)
    assert len(commits.batches) == 2


@pytest.mark.parametrize("kind", [LedgerAlarm, RuntimeError])
def test_an_unexpected_error_runs_the_others_alone(
    writer: Any, commits: Commits, kind: type[Exception]
) -> None:
    commits.error = kind("unexpected")
    outcomes = gathered(writer, commits, [1, -1, 2])
    assert outcomes[0] == 2
    assert outcomes[2] == 4
    assert isinstance(outcomes[1], kind)
    assert [len(batch) for batch in commits.batches] == [1, 3, 1, 1, 1]


@pytest.mark.parametrize("kind", [CommitUnknown, Busy])
def test_nobody_is_told_more_than_is_known(
    writer: Any, commits: Commits, kind: type[Exception]
) -> None:
    commits.error = kind("unknown")
    outcomes = gathered(writer, commits, [1, -1, 2])
    assert [type(outcome) for outcome in outcomes] == [kind] * 3
    assert len({id(outcome) for outcome in outcomes}) == 3, "each waiter has its own traceback"
    assert len(commits.batches) == 2, "an unknown commit is never repeated"


def test_closing_drains(commits: Commits) -> None:
    writer: Writer[int, int] = Writer(commits)
    commits.go_on.clear()
    with ThreadPoolExecutor(5) as threads:
        waiting = [threads.submit(writer.run, n) for n in range(4)]
        while len(writer._queue) + sum(map(len, commits.batches)) < 4:
            pass
        closing = threads.submit(writer.close)
        commits.go_on.set()
        closing.result(60)
        assert sorted(future.result(60) for future in waiting) == [0, 2, 4, 6]
    with pytest.raises(Busy):
        writer.run(1)


def test_hundreds_wait_without_a_thread_each(writer: Any, commits: Commits) -> None:
    async def ask() -> list[int]:
        return await asyncio.gather(*(writer.run_async(n % 100) for n in range(400)))

    before = threading.active_count()
    seen: list[int] = []

    async def run() -> list[int]:
        # All wait before the first commit ends, so how many there are does not depend on chance.
        commits.go_on.clear()
        asking = asyncio.ensure_future(ask())
        while sum(map(len, commits.batches)) + len(writer._queue) < 400:
            await asyncio.sleep(0.001)
        commits.go_on.set()
        while not asking.done():
            seen.append(threading.active_count())
            await asyncio.sleep(0.001)
        return await asking

    assert asyncio.run(run()) == [2 * (n % 100) for n in range(400)]
    assert max(seen) <= before + 1
    assert len(commits.batches) <= 2


def test_who_goes_away_changes_nothing(writer: Any, commits: Commits) -> None:
    async def run() -> int:
        commits.go_on.clear()
        gone = asyncio.ensure_future(writer.run_async(1))
        stays = asyncio.ensure_future(writer.run_async(2))
        await asyncio.sleep(0.01)
        gone.cancel()
        commits.go_on.set()
        return int(await stays)

    assert asyncio.run(run()) == 4


class TestOnTheLedger:
    """Batches of real reserves."""

    def sizes(self, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        sizes: list[int] = []
        run = batch.run

        def counted(connection: Any, members: Any, lease_us: int) -> Any:
            sizes.append(len(members))
            return run(connection, members, lease_us)

        monkeypatch.setattr(batch, "run", counted)
        return sizes

    async def together(self, world: World, requests: Sequence[Reserve]) -> list[Any]:
        return await asyncio.gather(
            *map(world.ledger.reserve_async, requests), return_exceptions=True
        )

    def test_a_refused_member_leaves_nothing_behind(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        dataset, analyst = world.ready(loss(1), loss(5))
        other = world.analyst()
        world.grant(dataset, other, loss(10))
        asked = []
        for n in range(60):
            # Refused by the first account, by the cap after the first was charged, or granted.
            asked.append(request(dataset, analyst, loss("0.3"), key=f"a{n}"))
            asked.append(request(dataset, other, loss(1), key=f"b{n}"))
        sizes = self.sizes(monkeypatch)
        outcomes = asyncio.run(self.together(world, asked))
        assert max(sizes) > 10  # of 120 that come together
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
        asked = [request(dataset, analyst, key=f"k{n}") for n in range(20)]
        twin = request(dataset, analyst, key="twin")
        # The id of another query: the primary key refuses it, which nobody expects.
        object.__setattr__(twin, "query_id", asked[3].query_id)
        outcomes = asyncio.run(self.together(world, [*asked, twin]))
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
        asked = [request(dataset, analyst) for _ in range(10)]
        outcomes = asyncio.run(self.together(world, asked))
        # Not even a refusal is told: it was decided on charges that may not stand.
        assert [type(outcome) for outcome in outcomes] == [CommitUnknown] * 10
