"""Reserving is charging: all of it or nothing, decided by the guards alone."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select

from accounting.account import AccountRank
from accounting.errors import AccountFrozen, AllowanceEnded, BudgetExhausted, CapExhausted
from accounting.privacy_loss import PrivacyLoss
from storage.catalogue import versions
from storage.database import tables
from storage.errors import NoRecords, NotFound, NotOpen, StillRunning
from storage.ledger import ledger, limits
from storage.ledger.accounts import AccountKey
from storage.ledger.ledger import Reservation
from storage.ledger.limits import End
from storage.queries.entry_pages import page_of_entries
from tests.support.ledgers import set_frozen
from tests.support.world import (
    World,
    allowance,
    as_limit,
    check_invariants,
    contents,
    loss,
    request,
)


def test_a_charge_stands_against_the_account_and_the_cap(world: World) -> None:
    dataset, analyst = world.ready(loss(1, "0.001"), loss(5, "0.1"))
    reservation = world.ledger.reserve(request(dataset, analyst, loss("0.3", "0.0001")))
    assert isinstance(reservation, Reservation)
    assert reservation.attempt == 1
    assert reservation.version == 1
    assert reservation.remaining == loss("0.7", "0.0009")
    assert world.charged(dataset, analyst) == (loss("0.3", "0.0001"),) * 2
    charge = page_of_entries(world.database, analyst_id=analyst.id).items[0]
    assert (charge.kind, charge.query_id) == ("charge", reservation.query_id)
    assert charge.head == reservation.receipt
    check_invariants(world.database)


def test_a_budget_is_spent_to_the_last_unit(world: World) -> None:
    dataset, analyst = world.ready(PrivacyLoss(10))
    for _ in range(10):
        world.ledger.reserve(request(dataset, analyst, PrivacyLoss(1)))
    with pytest.raises(BudgetExhausted) as refusal:
        world.ledger.reserve(request(dataset, analyst, PrivacyLoss(1)))
    assert (refusal.value.charge, refusal.value.remaining) == (PrivacyLoss(1), PrivacyLoss(0))
    check_invariants(world.database)


def test_an_allowance_that_ends_after_the_look_up_takes_no_charge(world: World) -> None:
    dataset, analyst = world.ready()

    def end(until_us: int) -> None:
        limit, owner = as_limit(loss(1)), world.owner.id
        world.ledger.grant(dataset.id, analyst.id, limit, actor_id=owner, end=End(until_us))

    end(world.now() + 10**9)
    assert isinstance(world.ledger.reserve(request(dataset, analyst)), Reservation)
    before = world.charged(dataset, analyst)
    end(world.now())
    with pytest.raises(AllowanceEnded):
        world.ledger.reserve(request(dataset, analyst))
    assert world.charged(dataset, analyst) == before
    check_invariants(world.database)


@pytest.mark.parametrize(
    "limit, cap, charge, refusal",
    [
        ("1", "9", ("1.000000001", 0), BudgetExhausted),
        ("9", "1", ("1.000000001", 0), CapExhausted),
        ("1", "1", ("1.000000001", 0), BudgetExhausted),  # the account refuses before the cap does
        ("1", "1", ("0.1", "0.000000000000000001"), BudgetExhausted),
    ],
)
def test_a_refusal_stores_nothing(
    world: World, limit: str, cap: str, charge: tuple[str, str], refusal: type[Exception]
) -> None:
    dataset, analyst = world.ready(loss(limit), loss(cap))
    before = contents(world.database)
    with pytest.raises(refusal) as raised:
        world.ledger.reserve(request(dataset, analyst, loss(*charge), key="k"))
    assert raised.value.charge == loss(*charge)  # type: ignore[attr-defined]
    assert contents(world.database) == before
    # The refusal has not used up the idempotency key: a charge that fits may come with it.
    assert isinstance(world.ledger.reserve(request(dataset, analyst, key="k")), Reservation)


def test_delta_may_stop_at_the_cap(world: World) -> None:
    dataset, analyst = world.ready(loss(1, "0.5"), loss(1, "0.1"))
    with pytest.raises(CapExhausted):
        world.ledger.reserve(request(dataset, analyst, loss("0.1", "0.2")))
    check_invariants(world.database)


def test_without_an_account_there_is_nothing_to_ask(world: World) -> None:
    dataset, stranger = world.dataset(), world.analyst()
    before = contents(world.database)
    with pytest.raises(NotFound):
        world.ledger.reserve(request(dataset, stranger))
    assert contents(world.database) == before


def test_a_frozen_account_takes_no_charge(world: World) -> None:
    dataset, analyst = world.ready()
    account = world.ledger.account(dataset.id, analyst.id)
    assert account is not None
    for frozen in (account.id, world.ledger.cap(dataset.id).id):
        freeze = lambda connection: set_frozen(connection, frozen, True)  # noqa: E731, B023
        thaw = lambda connection: set_frozen(connection, frozen, False)  # noqa: E731, B023
        assert world.database.write(freeze) is True
        assert world.database.write(freeze) is False
        before = contents(world.database)
        with pytest.raises(AccountFrozen):
            world.ledger.reserve(request(dataset, analyst))
        assert contents(world.database) == before
        assert world.database.write(thaw) is True
    assert isinstance(world.ledger.reserve(request(dataset, analyst)), Reservation)
    kinds = {
        entry.kind for entry in page_of_entries(world.database, dataset_name=dataset.name).items
    }
    assert kinds == {"genesis", "freeze", "unfreeze", "charge"}
    check_invariants(world.database)


def test_an_overall_limit_is_charged_in_the_same_transaction(world: World) -> None:
    (first, analyst), second = world.ready(loss(5)), world.dataset()
    world.grant(second, analyst, loss(5))
    world.database.write(
        lambda connection: limits.open_account(
            connection, AccountKey(AccountRank.ANALYST, 0, analyst.id), allowance(1), world.admin.id
        )
    )
    world.ledger.reserve(request(first, analyst, loss("0.6")))
    before = contents(world.database)
    with pytest.raises(BudgetExhausted) as refusal:
        world.ledger.reserve(request(second, analyst, loss("0.5")))
    assert refusal.value.remaining == loss("0.4")
    assert contents(world.database) == before
    reservation = world.ledger.reserve(request(second, analyst, loss("0.4")))
    assert isinstance(reservation, Reservation)
    check_invariants(world.database)
    assert world.ledger.release(reservation)
    assert isinstance(world.ledger.reserve(request(second, analyst, loss("0.4"))), Reservation)
    check_invariants(world.database)


def test_the_current_version_is_charged_and_stored(world: World) -> None:
    dataset, analyst = world.ready()
    stale = request(dataset, analyst)
    newer = world.publish(dataset)
    reservation = world.ledger.reserve(stale)
    assert isinstance(reservation, Reservation)
    assert (dataset.version, reservation.version, newer.version) == (1, 2, 2)
    row = world.queries.find(reservation.query_id)
    assert row is not None
    assert row.version == 2


def test_withdrawn_records_are_never_charged_for(world: World) -> None:
    dataset, analyst = world.ready()
    late = request(dataset, analyst)
    world.versions.withdraw(dataset.name, actor=world.owner)
    before = contents(world.database)
    with pytest.raises(NoRecords):
        world.ledger.reserve(late)
    assert contents(world.database) == before


def test_a_withdrawal_waits_for_a_charge_under_way(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset, analyst = world.ready()
    charging, go_on = threading.Event(), threading.Event()
    run = ledger.reserve_all

    def slow(*arguments: Any) -> Any:
        outcomes = run(*arguments)
        charging.set()
        assert go_on.wait(60)
        return outcomes

    monkeypatch.setattr(ledger, "reserve_all", slow)
    with ThreadPoolExecutor(2) as threads:
        charged = threads.submit(world.ledger.reserve, request(dataset, analyst))
        assert charging.wait(60)
        withdrawn = threads.submit(lambda: world.versions.withdraw(dataset.name, actor=world.owner))
        with pytest.raises(TimeoutError):
            withdrawn.result(timeout=0.2)
        go_on.set()
        assert isinstance(charged.result(60), Reservation)
        withdrawn.result(60)
    with pytest.raises(NoRecords):
        world.ledger.reserve(request(dataset, analyst))
    # The charged query may still read its version, so the version's files are not removed.
    assert world.versions.remove_unused(dataset.name) == []
    check_invariants(world.database)


def test_a_charge_waits_for_a_withdrawal_under_way(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset, analyst = world.ready()
    facts = ("journal", "journal_stream")
    before = contents(world.database, "dataset", *facts)
    locked, go_on = threading.Event(), threading.Event()
    lock_cap = versions.lock_cap

    def slow(*arguments: object) -> None:
        lock_cap(*arguments)  # type: ignore[arg-type]
        locked.set()
        assert go_on.wait(60)

    monkeypatch.setattr(versions, "lock_cap", slow)
    with ThreadPoolExecutor(2) as threads:
        withdrawn = threads.submit(lambda: world.versions.withdraw(dataset.name, actor=world.owner))
        assert locked.wait(60)
        charged = threads.submit(world.ledger.reserve, request(dataset, analyst))
        with pytest.raises(TimeoutError):
            charged.result(timeout=0.2)
        go_on.set()
        withdrawn.result(60)
        with pytest.raises(NoRecords):
            charged.result(60)
    assert contents(world.database, "dataset", *facts) == before


def test_requests_without_a_key_are_all_new(world: World) -> None:
    dataset, analyst = world.ready()
    for _ in range(3):
        assert isinstance(world.ledger.reserve(request(dataset, analyst)), Reservation)
    with world.database.read() as connection:
        keys = connection.execute(select(tables.query.c.idem_key)).scalars().all()
    # A request without an idempotency key is stored under a key that is not ASCII. Clients may send
    # only ASCII keys, so none can name such a request.
    assert len(set(keys)) == 3
    assert not any(key.isascii() for key in keys)


def test_a_key_belongs_to_one_analyst(world: World) -> None:
    dataset, first = world.ready()
    second = world.analyst()
    world.grant(dataset, second, loss(1))
    for analyst in (first, second):
        outcome = world.ledger.reserve(request(dataset, analyst, key="the same"))
        assert isinstance(outcome, Reservation)


@pytest.mark.parametrize(
    "wrong",
    [
        {"charge": PrivacyLoss(0)},
        {"charge": PrivacyLoss(10**18 + 1)},
        {"charge": PrivacyLoss(1, 10**18)},
        {"key": ""},
        {"key": "·"},
        {"key": "k" * 256},
    ],
)
def test_impossible_requests_are_bugs(wrong: dict[str, object]) -> None:
    from uuid import uuid4

    from storage.ledger.ledger import Reserve

    right = Reserve(uuid4(), 1, 1, "k", bytes(32), loss(1), b"{}")
    with pytest.raises(ValueError):
        replace(right, **wrong)  # type: ignore[arg-type]


def test_only_the_version_whose_records_are_open_is_charged(world: World) -> None:
    """A version published after the look-up is refused, free; a takeover reads its own version."""
    dataset, analyst = world.ready()
    with pytest.raises(NotOpen):
        world.ledger.reserve(replace(request(dataset, analyst, key="k"), version=2))
    assert world.charged(dataset, analyst) == (loss(0), loss(0))
    first = world.ledger.reserve(replace(request(dataset, analyst, key="k"), version=1))
    assert isinstance(first, Reservation)
    world.publish(dataset)
    world.lapse()
    with pytest.raises(StillRunning):
        world.ledger.reserve(replace(request(dataset, analyst, key="k"), version=2))
    again = world.ledger.reserve(replace(request(dataset, analyst, key="k"), version=1))
    assert isinstance(again, Reservation)
    assert (again.query_id, again.attempt, again.version) == (first.query_id, 2, 1)
    assert first.charged_rho is None
    assert again.charged_rho is not None
