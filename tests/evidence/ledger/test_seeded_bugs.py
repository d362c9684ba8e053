"""Every bug that ledgers have had is caught: a suite passes without it and fails with it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from accounting.errors import BudgetExhausted
from storage.assurance.heads import HeadsLog
from storage.database import tables
from storage.database.database import Database, Transaction
from storage.database.failures import Again
from storage.database.statements import Each
from storage.errors import Busy, LedgerAlarm
from storage.ledger import charging
from storage.ledger.ledger import Reservation
from tests.evidence.ledger import test_crashes, test_races
from tests.support import seeded
from tests.support.seeded import Edited, Seed
from tests.support.world import World, check_invariants, loss, request
from tests.unit.storage.assurance import test_rollback
from tests.unit.storage.journal import test_writer
from tests.unit.storage.ledger import test_key_accounts, test_reserve, test_rho, test_settle

Suite = Callable[[World, pytest.MonkeyPatch], None]


def exactly_the_room(world: World, _monkeypatch: pytest.MonkeyPatch) -> None:
    """200 concurrent requests for a budget of ten, as in ``test_races``, twice against chance."""
    for _ in range(2):
        dataset, analyst = world.ready(loss(1))
        requests = [request(dataset, analyst) for _ in range(200)]
        assert test_races.count_granted(world.ledger.reserve, requests) == 10


def one_holder(world: World, _monkeypatch: pytest.MonkeyPatch) -> None:
    test_settle.test_only_the_attempt_that_holds_the_query_may_answer(world)


def all_or_nothing(world: World, _monkeypatch: pytest.MonkeyPatch) -> None:
    kind = world.database.engine.dialect.name
    writes = {"sqlite": 6, "postgresql": 5}
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


def the_room_of_a_key(world: World, _monkeypatch: pytest.MonkeyPatch) -> None:
    test_races.test_the_limit_of_a_key_holds_on_all_datasets_at_once(world)


def the_books_of_a_key(world: World, _monkeypatch: pytest.MonkeyPatch) -> None:
    test_key_accounts.test_a_query_is_charged_to_its_key_and_to_its_user(world)


def the_end(world: World, _monkeypatch: pytest.MonkeyPatch) -> None:
    test_reserve.test_an_allowance_that_ends_after_the_look_up_takes_no_charge(world)


def both_measures(world: World, _monkeypatch: pytest.MonkeyPatch) -> None:
    """δ runs out long before ε does."""
    dataset, analyst = world.ready(loss(1, "0.1"))
    outcomes = []
    for _ in range(3):
        try:
            outcomes.append(world.ledger.reserve(request(dataset, analyst, loss("0.1", "0.06"))))
        except BudgetExhausted:
            outcomes.append(None)
    assert [outcome is not None for outcome in outcomes] == [True, False, False]


def the_books(world: World, _monkeypatch: pytest.MonkeyPatch) -> None:
    """One query is answered, one given back; then everything is worked out again."""
    dataset, analyst = world.ready(loss(1))
    first, second = (world.ledger.reserve(request(dataset, analyst)) for _ in range(2))
    assert world.ledger.settle(first, status=201, body=b"x", release_us=0)
    assert world.ledger.release(second)
    check_invariants(world.database)


def either_measure(world: World, _monkeypatch: pytest.MonkeyPatch) -> None:
    test_rho.test_a_charge_fits_by_epsilon_or_by_rho(world)


def stated_limits(world: World, _monkeypatch: pytest.MonkeyPatch) -> None:
    test_rho.test_a_limit_states_its_delta_and_falls_to_what_its_charges_fit(world)


def no_finite_epsilon(world: World, _monkeypatch: pytest.MonkeyPatch) -> None:
    test_rho.test_a_release_without_a_finite_epsilon_closes_the_way_by_epsilon(world)


def allowed_alone(world: World, _monkeypatch: pytest.MonkeyPatch) -> None:
    test_rho.test_a_release_without_a_finite_epsilon_needs_the_permission_of_account_and_cap(world)


def sums_in_64_bits(world: World, _monkeypatch: pytest.MonkeyPatch) -> None:
    test_rho.test_sums_of_epsilon_stay_within_64_bits_where_rho_admits(world)


def filled(world: World, _monkeypatch: pytest.MonkeyPatch) -> None:
    test_rho.test_what_was_not_counted_is_filled_in_with_the_first_limit_in_rho(world)


def filled_while_frozen(world: World, _monkeypatch: pytest.MonkeyPatch) -> None:
    test_rho.test_a_frozen_account_gets_its_first_limit_in_rho(world)


def believed_limits(world: World, _monkeypatch: pytest.MonkeyPatch) -> None:
    test_rho.test_verification_finds_a_limit_in_rho_beyond_its_promise(world, opening=True)


def lost_delta(world: World, _monkeypatch: pytest.MonkeyPatch) -> None:
    with heads() as log:
        test_rollback.test_a_lost_delta_is_put_back_without_a_larger_epsilon(world, log)


def lost_heads(world: World, _monkeypatch: pytest.MonkeyPatch) -> None:
    with heads() as log:
        test_rollback.test_lost_heads_leave_nothing_to_fit_by_epsilon(world, log)


def lost_rho(world: World, _monkeypatch: pytest.MonkeyPatch) -> None:
    suite = test_rollback.test_charges_that_an_account_never_counted_are_not_published_as_counted
    with heads() as log, pytest.MonkeyPatch.context() as patch:
        suite(world, log, patch)


@contextmanager
def heads() -> Iterator[HeadsLog]:
    """The heads of a ledger that began empty, in a file of their own."""
    with TemporaryDirectory() as folder:
        log = HeadsLog(Path(folder) / "heads.log")
        log.begin(1)
        yield log


CAUGHT: list[tuple[Seed, Suite, tuple[str, ...]]] = [
    (seeded.read_check_write, exactly_the_room, ("sqlite", "postgresql")),
    (seeded.read_check_increment, exactly_the_room, ("sqlite", "postgresql")),
    (seeded.sum_over_entries, exactly_the_room, ("postgresql",)),
    (seeded.no_fencing, one_holder, ("sqlite", "postgresql")),
    (seeded.no_guard, exactly_the_room, ("sqlite", "postgresql")),
    (seeded.end_forgotten, the_end, ("sqlite", "postgresql")),
    (seeded.guard_of_one_measure, both_measures, ("sqlite", "postgresql")),
    (seeded.rho_of_one_arm, either_measure, ("sqlite", "postgresql")),
    (seeded.rho_refunded_twice, either_measure, ("sqlite", "postgresql")),
    (seeded.rho_recomputed_at_release, either_measure, ("sqlite", "postgresql")),
    (seeded.raise_without_delta, stated_limits, ("sqlite", "postgresql")),
    (seeded.fill_forgotten, filled, ("sqlite",)),
    (seeded.fill_refused_by_a_freeze, filled_while_frozen, ("sqlite",)),
    (seeded.heads_without_limits, lost_delta, ("sqlite",)),
    (seeded.epsilon_after_lost_heads, lost_heads, ("sqlite",)),
    (seeded.rho_counted_by_all, lost_rho, ("sqlite",)),
    (seeded.promise_unchecked, believed_limits, ("sqlite",)),
    (seeded.unpriced_by_epsilon, no_finite_epsilon, ("sqlite", "postgresql")),
    (seeded.gaussian_without_permission, allowed_alone, ("sqlite", "postgresql")),
    (seeded.sums_beyond_64_bits, sums_in_64_bits, ("sqlite", "postgresql")),
    (seeded.key_not_charged, the_room_of_a_key, ("sqlite", "postgresql")),
    (seeded.key_not_named, the_books_of_a_key, ("sqlite",)),
    (seeded.released_and_running, the_books, ("sqlite", "postgresql")),
    (seeded.head_of_its_own, the_books, ("sqlite", "postgresql")),
    (seeded.no_ending, the_books, ("sqlite", "postgresql")),
    (seeded.two_endings, the_books, ("sqlite", "postgresql")),
    (seeded.stream_advanced_twice, the_books, ("sqlite", "postgresql")),
    (seeded.refund_on_lapse, one_holder, ("sqlite", "postgresql")),
    (seeded.charge_at_settle, exactly_the_room, ("sqlite", "postgresql")),
    (seeded.two_transactions, all_or_nothing, ("sqlite", "postgresql")),
    (seeded.no_state_check, one_holder, ("sqlite", "postgresql")),
    (seeded.reply_before_commit, nobody_is_told, ("sqlite", "postgresql")),
    (seeded.retry_after_unknown_commit, never_again, ("sqlite", "postgresql")),
    (seeded.missing_check, the_second_wall, ("sqlite", "postgresql")),
]


@pytest.fixture
def database(empty_url: str, tmp_path: Path) -> Iterator[Database]:
    """A database for one test, because some seeds change the schema."""
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
    """Processes charge the same accounts in batches (PostgreSQL) and cannot deadlock."""

    pytestmark = pytest.mark.postgres

    @pytest.fixture
    def kind(self) -> str:
        return "postgresql"

    @pytest.fixture(autouse=True)
    def own_lock(self, monkeypatch: pytest.MonkeyPatch) -> threading.local:
        """Each thread locks by the statement, and names accounts in the order, of its own."""
        own = threading.local()

        class Chosen:
            def of_each(self, connection: Any, many: Any) -> Any:
                return own.lock.of_each(connection, many[:: own.order])

        self.own, self.accounts = own, charging.ACCOUNTS
        monkeypatch.setattr(charging, "ACCOUNTS", Chosen())
        return own

    def deadlocks(self, world: World, *locks: Each) -> int:
        """How often a process that locks accounts by each statement had to be rolled back."""
        dataset = world.dataset(loss(1000))
        analysts = [world.analyst() for _ in range(4)]
        for analyst in analysts:
            world.grant(dataset, analyst, loss(1000))
        deadlocks: list[int] = []
        together = threading.Barrier(len(locks))

        def process(lock: Each, order: int) -> None:
            self.own.lock, self.own.order = lock, order
            with world.database.engine.connect() as connection:
                connection.exec_driver_sql("SET deadlock_timeout = '10ms'")
                # A lock timeout on a slow machine must not count as a deadlock.
                connection.exec_driver_sql("SET lock_timeout = 0")
                connection.commit()
                together.wait(60)
                for _ in range(40):
                    requests = [request(dataset, analyst, loss("0.001")) for analyst in analysts]
                    transaction = Transaction(connection, lambda *_: None)
                    try:
                        transaction.run(lambda c, batch=requests: world.ledger._run(c, batch))
                        transaction.commit()
                    except Again:
                        deadlocks.append(1)

        with ThreadPoolExecutor(len(locks)) as threads:
            orders = (1, -1) * len(locks)
            list(threads.map(process, locks, orders))
        return len(deadlocks)

    def deadlocks_sometime(self, world: World, *locks: Each) -> bool:
        """A busy machine may run the processes one by one, so this makes up to 20 tries."""
        return any(self.deadlocks(world, *locks) for _ in range(20))

    def test_one_order_never_deadlocks(self, world: World) -> None:
        assert self.deadlocks(world, *[self.accounts] * 4) == 0

    def test_the_reversed_order_is_caught(self, world: World) -> None:
        wide_first = Edited(self.accounts, "ORDER BY budget_account.rank", r"\g<0> DESC")
        assert self.deadlocks_sometime(world, *[self.accounts, wide_first] * 2)

    def test_no_order_over_the_batch_is_caught(self, world: World) -> None:
        unordered = Edited(
            self.accounts, "ORDER BY budget_account.rank, budget_account.id", "ORDER BY random()"
        )
        assert self.deadlocks_sometime(world, *[unordered] * 4)
