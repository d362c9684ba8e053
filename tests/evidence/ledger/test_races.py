"""Concurrent requests in threads and processes use exactly the remaining budget, never more."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from sqlalchemy import Connection, update

from accounting.account import AccountRank
from accounting.errors import BelowSpent, BudgetExhausted, CapExhausted
from accounting.privacy_loss import PrivacyLoss
from storage.database.database import Database
from storage.database.tables import budget_account
from storage.errors import StillRunning
from storage.ledger.accounts import AccountKey, find_account
from storage.ledger.ledger import Replay, Reservation, Reserve
from storage.queries.entry_pages import page_of_entries
from tests.support.workers import patiently, reserve_many
from tests.support.world import BODY_HASH, World, check_invariants, loss, request

Outcome = Reservation | Replay | Exception


def at_once(
    reserve: Callable[[Reserve], Reservation | Replay | None], requests: Iterable[Reserve]
) -> list[Outcome | None]:
    """Returns the outcome of every request, sent by 32 threads that start together."""
    start = threading.Barrier(32)

    def run(mine: list[Reserve]) -> list[Outcome | None]:
        outcomes: list[Outcome | None] = []
        start.wait()
        for one in mine:
            try:
                outcomes.append(patiently(partial(reserve, one)))
            except (BudgetExhausted, CapExhausted, StillRunning) as refusal:
                outcomes.append(refusal)
        return outcomes

    listed = list(requests)
    with ThreadPoolExecutor(32) as threads:
        parts = threads.map(run, [listed[i::32] for i in range(32)])
        return [outcome for part in parts for outcome in part]


def count_granted(
    reserve: Callable[[Reserve], Reservation | Replay | None], requests: Iterable[Reserve]
) -> int:
    outcomes = at_once(reserve, requests)
    return sum(not isinstance(outcome, Exception) for outcome in outcomes)


def test_two_hundred_at_once_for_room_of_ten(world: World) -> None:
    dataset, analyst = world.ready(loss(1))
    outcomes = at_once(world.ledger.reserve, (request(dataset, analyst) for _ in range(200)))
    kinds = Counter(type(outcome) for outcome in outcomes)
    assert kinds == {Reservation: 10, BudgetExhausted: 190}
    assert world.charged(dataset, analyst) == (loss(1), loss(1))
    entries = page_of_entries(world.database, analyst_id=analyst.id, limit=500).items
    assert sum(entry.kind == "charge" for entry in entries) == 10
    check_invariants(world.database)


def test_the_limit_of_a_key_holds_on_all_datasets_at_once(world: World) -> None:
    dataset, analyst = world.ready(loss(100))
    elsewhere = world.dataset()
    world.grant(elsewhere, analyst, loss(100))
    limited_key = world.limited_key(analyst, loss(1))
    requests = (
        request((dataset, elsewhere)[i % 2], analyst, limited_key=limited_key) for i in range(200)
    )
    assert count_granted(world.ledger.reserve, requests) == 10
    spent = world.ledger.accounts_of_keys(analyst.id)[limited_key].account.charged
    assert spent == loss(1)
    check_invariants(world.database)


class WrongLedger:
    """The classic bug: it reads, checks, then writes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def reserve(self, request: Reserve) -> None:
        with self._database.read() as connection:
            key = AccountKey(AccountRank.ANALYST_ON_DATASET, request.dataset_id, request.analyst_id)
            row = find_account(connection, key)
        assert row is not None
        if not row.account.admits(request.charge):
            raise BudgetExhausted(charge=request.charge, remaining=row.account.remaining)
        charged = row.account.charged + request.charge
        write = update(budget_account).where(budget_account.c.id == row.id)

        def work(connection: Connection) -> None:
            connection.execute(write.values(charged_eps_n=charged.epsilon_nano))

        self._database.write(work)


def test_a_ledger_that_reads_then_writes_is_caught(world: World) -> None:
    """A scheduler may run the threads one by one, so the test makes up to 20 tries."""
    wrong = WrongLedger(world.database)

    def granted() -> int:
        dataset, analyst = world.ready(loss(1))
        return count_granted(wrong.reserve, (request(dataset, analyst) for _ in range(200)))

    assert any(granted() > 10 for _ in range(20))


def test_the_cap_holds_for_all_analysts_together(world: World) -> None:
    dataset = world.dataset(cap=loss(1))
    analysts = [world.analyst() for _ in range(4)]
    for analyst in analysts:
        world.grant(dataset, analyst, loss("0.5"))
    requests = (request(dataset, analysts[i % 4]) for i in range(100))
    outcomes = at_once(world.ledger.reserve, requests)
    assert sum(isinstance(outcome, Reservation) for outcome in outcomes) == 10
    assert world.ledger.cap(dataset.id).account.charged == loss(1)
    check_invariants(world.database)


def test_one_key_at_once_is_one_charge_and_one_answer(world: World) -> None:
    dataset, analyst = world.ready(loss(1))

    def ask(reserve: Reserve) -> Replay:
        """Reserve like a client, with retries after 409."""
        while True:
            try:
                outcome = world.ledger.reserve(reserve)
            except StillRunning:
                continue
            if isinstance(outcome, Replay):
                return outcome
            body = outcome.query_id.bytes
            assert world.ledger.settle(outcome, status=201, body=body, release_us=0)

    requests = [request(dataset, analyst, key="k") for _ in range(50)]
    replies = at_once(ask, requests)
    assert len(replies) == 50
    assert len({reply.body for reply in replies if isinstance(reply, Replay)}) == 1
    assert world.charged(dataset, analyst) == (loss("0.1"), loss("0.1"))
    check_invariants(world.database)


def test_a_lapsed_query_is_taken_over_once(world: World) -> None:
    dataset, analyst = world.ready()
    world.ledger.reserve(request(dataset, analyst, key="k"))
    world.lapse()
    outcomes = at_once(
        world.ledger.reserve, (request(dataset, analyst, key="k") for _ in range(64))
    )
    winners = [outcome for outcome in outcomes if isinstance(outcome, Reservation)]
    assert [winner.attempt for winner in winners] == [2]
    assert all(isinstance(o, StillRunning | Reservation) for o in outcomes)
    check_invariants(world.database)


def test_settle_and_release_exclude_each_other(world: World) -> None:
    dataset, analyst = world.ready(loss(5))
    for _ in range(20):
        reservation = world.ledger.reserve(request(dataset, analyst))
        assert isinstance(reservation, Reservation)
        with ThreadPoolExecutor(2) as threads:
            settle = partial(world.ledger.settle, reservation, status=201, body=b"x", release_us=0)
            settled = threads.submit(patiently, settle)
            released = threads.submit(patiently, partial(world.ledger.release, reservation))
        assert settled.result() != released.result()
    check_invariants(world.database)


def test_limits_fall_only_to_what_is_charged(world: World) -> None:
    dataset, analyst = world.ready(loss(10))
    refused = []

    def lower() -> None:
        for limit in range(9, 0, -1):
            try:
                patiently(partial(world.grant, dataset, analyst, loss(limit)))
            except BelowSpent as refusal:
                refused.append(refusal.spent)

    with ThreadPoolExecutor(5) as threads:
        lowering = threads.submit(lower)
        charges = [
            threads.submit(count_charges, world, (request(dataset, analyst, loss(1)),) * 1)
            for _ in range(20)
        ]
        lowering.result()
    granted = sum(charge.result() for charge in charges)
    account = world.ledger.account(dataset.id, analyst.id)
    assert account is not None
    assert account.account.charged == loss(granted)
    check_invariants(world.database)


def count_charges(world: World, requests: Iterable[Reserve]) -> int:
    granted = 0
    for one in requests:
        try:
            patiently(partial(world.ledger.reserve, one))
        except BudgetExhausted:
            continue
        granted += 1
    return granted


def test_an_account_is_opened_once(world: World) -> None:
    dataset, analyst = world.dataset(), world.analyst()
    with ThreadPoolExecutor(8) as threads:
        limits = [loss(i) for i in range(1, 17)]
        grant = partial(world.grant, dataset, analyst)
        list(threads.map(lambda limit: patiently(partial(grant, limit)), limits))
    kinds = Counter(
        entry.kind for entry in page_of_entries(world.database, analyst_id=analyst.id).items
    )
    assert kinds["genesis"] == 1
    assert len(world.ledger.accounts(dataset_id=dataset.id)) == 1
    check_invariants(world.database)


def test_processes_share_one_budget_and_one_key(world: World, url: str, tmp_path: Path) -> None:
    dataset, analyst = world.ready(loss(3))
    room, same = (url, str(tmp_path), dataset.id, analyst.id, 10**8, 40), 10
    with ProcessPoolExecutor(3, mp_context=get_context("spawn")) as pool:
        racing = [pool.submit(reserve_many, *room, "") for _ in range(3)]
        outcomes = Counter(
            "granted" if "-" in outcome else outcome for race in racing for outcome in race.result()
        )
        assert outcomes == {"granted": 30, "BudgetExhausted": 90}
        world.grant(dataset, analyst, loss(4))
        racing = [pool.submit(reserve_many, *room[:5], same, "k") for _ in range(3)]
        answers = {outcome for race in racing for outcome in race.result()}
    assert len(answers - {"StillRunning"}) == 1
    assert world.charged(dataset, analyst) == (loss("3.1"), loss("3.1"))
    replay = world.ledger.replay(analyst.id, "k", BODY_HASH)
    assert replay is not None
    assert answers - {"StillRunning"} == {replay.body.decode()}
    assert PrivacyLoss(10**8) == loss("0.1")
    check_invariants(world.database)
