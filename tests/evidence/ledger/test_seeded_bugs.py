"""Every bug that ledgers have had is caught: a suite passes without it and fails with it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

from storage.database import tables
from storage.database.database import Database
from storage.errors import Busy, LedgerAlarm
from storage.ledger import batch_postgresql
from storage.ledger.ledger import Reservation
from tests.evidence.ledger import test_crashes, test_races
from tests.support import seeded
from tests.support.seeded import Seed
from tests.support.world import World, loss, request
from tests.unit.storage.journal import test_writer
from tests.unit.storage.ledger import test_settle

Suite = Callable[[World, pytest.MonkeyPatch], None]


def exactly_the_room(world: World, _monkeypatch: pytest.MonkeyPatch) -> None:
    """200 at once for room of ten (``test_races``), twice: once could be luck."""
    for _ in range(2):
        dataset, analyst = world.ready(loss(1))
        asked = [request(dataset, analyst) for _ in range(200)]
        assert test_races.count_granted(world.ledger.reserve, asked) == 10


def one_holder(world: World, _monkeypatch: pytest.MonkeyPatch) -> None:
    test_settle.test_only_the_attempt_that_holds_the_query_may_answer(world)


def all_or_nothing(world: World, _monkeypatch: pytest.MonkeyPatch) -> None:
    kind = world.database.engine.dialect.name
    writes = {"sqlite": 5, "postgresql": 1}
    test_crashes.test_all_or_nothing(world, kind, test_crashes.reserve, writes)


def nobody_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = test_writer.TestOnTheLedger()
    suite.test_an_unknown_commit_tells_no_member_anything(world, monkeypatch)


def never_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = test_settle.TestUnknownCommit()
    suite.test_a_reserve_is_not_tried_again(world, monkeypatch)


def the_second_wall(world: World, _monkeypatch: pytest.MonkeyPatch) -> None:
    dataset, analyst = world.ready(loss(1))
    assert isinstance(world.ledger.reserve(request(dataset, analyst, loss("0.5"))), Reservation)
    lowered = tables.budget_account.update().values(lim_eps_n=1)
    with pytest.raises(LedgerAlarm):
        world.database.write(lambda connection: connection.execute(lowered))


CAUGHT: list[tuple[Seed, Suite, tuple[str, ...]]] = [
    (seeded.read_check_write, exactly_the_room, ("sqlite", "postgresql")),
    (seeded.read_check_increment, exactly_the_room, ("sqlite", "postgresql")),
    (seeded.sum_over_entries, exactly_the_room, ("postgresql",)),
    (seeded.no_fencing, one_holder, ("sqlite", "postgresql")),
    (seeded.refund_on_lapse, one_holder, ("sqlite", "postgresql")),
    (seeded.charge_at_settle, exactly_the_room, ("sqlite", "postgresql")),
    (seeded.two_transactions, all_or_nothing, ("sqlite",)),
    (seeded.no_state_check, one_holder, ("sqlite", "postgresql")),
    (seeded.reply_before_commit, nobody_is_told, ("sqlite", "postgresql")),
    (seeded.retry_after_unknown_commit, never_again, ("sqlite", "postgresql")),
    (seeded.missing_check, the_second_wall, ("sqlite", "postgresql")),
]


@pytest.fixture
def database(empty_url: str, tmp_path: Path) -> Iterator[Database]:
    """A database of its own: some seeds spoil the schema."""
    database = Database.open(empty_url, tmp_path)
    yield database
    database.close()


@pytest.mark.parametrize(
    ("kind", "seed", "suite"),
    [
        pytest.param(
            kind,
            seed,
            suite,
            marks=[pytest.mark.postgres] if kind == "postgresql" else [],
            id=f"{seed.__name__}-{kind}",
        )
        for seed, suite, kinds in CAUGHT
        for kind in kinds
    ],
)
def test_it_is_caught(world: World, seed: Seed, suite: Suite) -> None:
    with pytest.MonkeyPatch.context() as patch:
        suite(world, patch)
    with pytest.MonkeyPatch.context() as patch:
        seed(world, patch)
        with pytest.raises((AssertionError, pytest.fail.Exception, LedgerAlarm, Busy)):
            suite(world, patch)


class TestLockOrder:
    """Two processes charge the same accounts in batches (PostgreSQL): nobody waits in a circle."""

    pytestmark = pytest.mark.postgres

    @pytest.fixture
    def kind(self) -> str:
        return "postgresql"

    def deadlocks(self, world: World, *functions: str) -> int:
        """How often a process that calls each function had to be rolled back."""
        dataset = world.dataset(loss(1000))
        analysts = [world.analyst() for _ in range(4)]
        for analyst in analysts:
            world.grant(dataset, analyst, loss(1000))
        url = world.database.engine.url.set(drivername="postgresql")
        plain = url.render_as_string(hide_password=False)
        found: list[int] = []
        together = threading.Barrier(len(functions))

        def process(function: str, order: int) -> None:
            sql = batch_postgresql.RESERVE.replace("reserve_queries", function)
            with psycopg.connect(plain, autocommit=True) as connection:
                connection.execute("SET deadlock_timeout = '10ms'")
                together.wait(60)
                for _ in range(40):
                    asked = [request(dataset, analyst, loss("0.001")) for analyst in analysts]
                    columns = self.columns(asked[::order])
                    try:
                        connection.execute(sql, columns)
                    except psycopg.errors.DeadlockDetected:
                        found.append(1)

        with ThreadPoolExecutor(len(functions)) as threads:
            orders = (1, -1) * len(functions)
            list(threads.map(process, functions, orders))
        return len(found)

    def deadlocks_sometime(self, world: World, *functions: str) -> bool:
        """A busy machine lets processes run one after the other: they are given time to meet."""
        return any(self.deadlocks(world, *functions) for _ in range(20))

    def columns(self, asked: list[Any]) -> dict[str, Any]:
        captured: dict[str, Any] = {}

        class Driver:
            def execute(self, _sql: str, columns: dict[str, Any]) -> None:
                captured.update(columns)

        batch_postgresql._reserve(Driver(), asked, 60_000_000)
        return captured

    def seed(self, world: World, name: str, old: str, new: str) -> str:
        """The function of the schema under another name, with one thing changed."""
        with world.database.engine.begin() as connection:
            text = connection.exec_driver_sql(
                "SELECT pg_get_functiondef('reserve_queries'::regproc)"
            ).scalar_one()
            assert old in text
            changed = text.replace(old, new).replace("reserve_queries", name)
            connection.exec_driver_sql(changed.replace("%", "%%"))
        return name

    def test_one_order_never_deadlocks(self, world: World) -> None:
        assert self.deadlocks(world, *["reserve_queries"] * 4) == 0

    def test_the_reversed_order_is_caught(self, world: World) -> None:
        wide_first = self.seed(
            world,
            "reserve_wide_first",
            "ORDER BY a.rank, a.id FOR",
            "ORDER BY a.rank DESC, a.id FOR",
        )
        assert self.deadlocks_sometime(world, *["reserve_queries", wide_first] * 2)

    def test_no_order_over_the_batch_is_caught(self, world: World) -> None:
        unordered = self.seed(
            world, "reserve_unordered", "IF cardinality(ids) > 1 THEN", "IF false THEN"
        )
        assert self.deadlocks_sometime(world, *[unordered] * 4)
