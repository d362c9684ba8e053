"""A ledger that went backwards is frozen, and what it had charged is never given back."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, insert, select

from accounting.account import Account, Limit
from accounting.errors import AccountFrozen, BelowSpent, BudgetExhausted, CapExhausted
from accounting.privacy_loss import PrivacyLoss
from accounting.rho import pure_femto
from storage.assurance.heads import HeadsLog
from storage.assurance.publishing import Publisher
from storage.assurance.rollback import Accepted, HeadsTooOld, accept
from storage.assurance.verification import verify
from storage.database import tables
from storage.errors import LedgerAlarm
from storage.journal.layouts import EntryKind
from storage.ledger import charging
from storage.ledger.freezing import freeze
from storage.ledger.ledger import Reservation
from storage.queries.entry_pages import page_of_entries
from tests.support.tampering import rows_of, tampering
from tests.support.world import World, loss, request
from tests.unit.storage.assurance.test_verification import secret_url

#: The tables that a restore from a backup replaces: all of them.
RESTORED = tables.metadata.sorted_tables


@pytest.fixture
def log(tmp_path: Path) -> HeadsLog:
    """The heads of a ledger that began empty."""
    log = HeadsLog(tmp_path / "heads.log")
    log.begin(1)
    return log


def backed_up(world: World) -> dict[Any, list[Any]]:
    with world.database.read() as connection:
        return {table: rows_of(connection, table) for table in RESTORED}


def restore(world: World, backup: dict[Any, list[Any]]) -> None:
    with tampering(secret_url(world.database)) as run:
        for table in reversed(RESTORED):
            run(delete(table))
        for table, rows in backup.items():
            for row in rows:
                run(insert(table).values(row._asdict()))
    # A restored service has no stream of the journal open. This process still has one open, and its
    # next write detects that the restore has removed it.
    with suppress(LedgerAlarm):
        world.dataset(ready=False)


def charge(world: World, dataset: Any, analyst: Any, epsilon: str = "0.1") -> Reservation:
    reservation = world.ledger.reserve(request(dataset, analyst, loss(epsilon)))
    assert isinstance(reservation, Reservation)
    return reservation


def in_rho(charged: PrivacyLoss, lost: PrivacyLoss) -> PrivacyLoss:
    """A sum with the ρ of lost charges, which counts as that of one charge."""
    return replace(charged, rho_femto=pure_femto(lost.epsilon_nano))


def kinds(world: World, account: int) -> list[EntryKind]:
    e = tables.entry.c
    statement = select(e.kind).where(e.account_id == account).order_by(e.seq)
    with world.database.read() as connection:
        return [EntryKind(kind) for kind in connection.execute(statement).scalars()]


def test_only_what_moved_is_published(world: World, log: HeadsLog) -> None:
    dataset, analyst = world.ready()
    publisher = Publisher(world.database, log)
    assert publisher.look() == []
    assert len(log.published) == 2
    size = log.path.stat().st_size
    assert publisher.look() == []
    assert log.path.stat().st_size == size
    charge(world, dataset, analyst)
    publisher.look()
    (account,) = world.ledger.accounts(dataset_id=dataset.id)
    published = log.published[account.id]
    (newest,) = page_of_entries(world.database, analyst_id=analyst.id, limit=1).items
    assert (published.seq, published.head) == (account.seq, newest.head)
    assert published.charged == loss("0.1")


@pytest.mark.parametrize("charged_since", [1, 2])
def test_a_restored_ledger_is_frozen_and_gives_nothing_back(
    world: World, log: HeadsLog, charged_since: int
) -> None:
    dataset, analyst = world.ready(loss(1), cap=loss(5))
    charge(world, dataset, analyst)
    backup = backed_up(world)
    for _ in range(3):
        charge(world, dataset, analyst, "0.2")
    Publisher(world.database, HeadsLog(log.path)).look()
    restore(world, backup)
    # Charges between the restore and the comparison with the published heads (last hashes) make a
    # chain that is nearly as long as the lost one, but has other hashes.
    for _ in range(charged_since):
        charge(world, dataset, analyst, "0.01")
    publisher = Publisher(world.database, log)
    assert len(publisher.look()) == 2
    assert publisher.look() == []  # accounts that are frozen already are not frozen again
    with pytest.raises(AccountFrozen):
        charge(world, dataset, analyst)
    assert verify(world.database).valid

    done = accept(world.database, log)
    lost = loss("0.6") - loss("0.01") * charged_since
    assert {one.recharged for one in done} == {in_rho(lost, lost)}
    assert world.charged(dataset, analyst) == (in_rho(loss("0.7"), lost),) * 2
    (account,) = world.ledger.accounts(dataset_id=dataset.id)
    assert kinds(world, account.id)[-2:] == [EntryKind.FREEZE, EntryKind.UNFREEZE]
    assert publisher.look() == []
    charge(world, dataset, analyst, "0.3")
    with pytest.raises(BudgetExhausted):
        charge(world, dataset, analyst, "0.01")
    assert publisher.look() == []
    assert verify(world.database, heads=log.published).valid


def test_a_chain_that_went_on_from_another_head_is_frozen(world: World, log: HeadsLog) -> None:
    """Beyond the published number of entries, but not through the published one."""
    dataset, analyst = world.ready(loss(1))
    backup = backed_up(world)
    charge(world, dataset, analyst, "0.2")
    Publisher(world.database, log).look()
    restore(world, backup)
    for _ in range(4):
        charge(world, dataset, analyst, "0.01")
    assert len(Publisher(world.database, log).look()) == 2
    accept(world.database, log)
    assert world.charged(dataset, analyst) == (in_rho(loss("0.2"), loss("0.16")),) * 2


def test_a_limit_that_was_raised_since_holds_what_was_charged(world: World, log: HeadsLog) -> None:
    dataset, analyst = world.ready(loss(1))
    backup = backed_up(world)
    world.grant(dataset, analyst, loss(3))
    charge(world, dataset, analyst, "2.5")
    publisher = Publisher(world.database, log)
    publisher.look()
    restore(world, backup)
    publisher.look()
    accept(world.database, log)
    account = world.ledger.account(dataset.id, analyst.id)
    assert account is not None
    assert account.account.charged == in_rho(loss("2.5"), loss("2.5"))
    assert account.account.limit.loss == loss(3)
    assert kinds(world, account.id)[-3:] == [
        EntryKind.FREEZE,
        EntryKind.LIMIT_CHANGE,
        EntryKind.UNFREEZE,
    ]
    assert verify(world.database).valid


def test_a_missing_account_freezes_all(world: World, log: HeadsLog) -> None:
    """The account was opened after the backup: nobody knows what else happened since."""
    dataset, analyst = world.ready()
    backup = backed_up(world)
    late = world.analyst()
    world.grant(dataset, late, loss(1))
    charge(world, dataset, late, "0.5")
    publisher = Publisher(world.database, log)
    publisher.look()
    restore(world, backup)
    assert len(publisher.look()) == 2
    accept(world.database, log)
    half = in_rho(loss("0.5"), loss("0.5"))
    assert world.charged(dataset, analyst) == (loss(0), half)
    assert publisher.look() == []
    # A new account may get the number of the lost one. It is then frozen, and charged what the lost
    # one had spent.
    world.grant(dataset, late, loss(1))
    reopened = world.ledger.account(dataset.id, late.id)
    assert reopened is not None
    if reopened.id in log.published and log.published[reopened.id].charged == loss("0.5"):
        assert publisher.look() == [reopened.id]
        accept(world.database, log)
        assert world.charged(dataset, late)[0] == half
    assert publisher.look() == []


def test_heads_from_before_a_freeze_do_not_end_it(world: World, log: HeadsLog) -> None:
    """As in a restored backup: the freeze is in the copy, its mark in the log that went on."""
    dataset, analyst = world.ready(loss(1))
    charge(world, dataset, analyst, "0.2")
    publisher = Publisher(world.database, log)
    publisher.look()
    ids = [row.id for row in world.ledger.accounts(dataset_id=dataset.id)]
    at_us = world.now()
    world.database.write(lambda connection: freeze(connection, ids, at_us))
    # These published heads are from before the freeze, and the ledger is not behind them. So they
    # cannot show what happened after the freeze, and the operator's acceptance is refused.
    assert publisher.look() == []
    with pytest.raises(HeadsTooOld):
        accept(world.database, log)
    done = accept(world.database, log, heads_lost=True)
    # The whole remaining ε of 0.8 is charged, with the ρ of a single ε-DP charge.
    rest = PrivacyLoss(8 * 10**8, 0, pure_femto(8 * 10**8))
    assert done == [Accepted(ids[0], dataset.name, analyst.name, "", rest)]
    with pytest.raises(BudgetExhausted):
        charge(world, dataset, analyst, "0.000001")
    assert verify(world.database).valid


def test_nothing_frozen_needs_no_acceptance(world: World, log: HeadsLog) -> None:
    world.ready()
    assert accept(world.database, log) == []


@pytest.mark.parametrize("counted", [True, False])
def test_lost_charges_are_charged_again_in_rho(
    world: World, log: HeadsLog, tmp_path: Path, counted: bool
) -> None:
    """A line of an earlier version has no ρ; then what was lost counts as one charge."""
    both = Limit.of(loss(5), 10**12)
    dataset, analyst = world.ready(both, both)
    backup = backed_up(world)
    world.ledger.reserve(request(dataset, analyst, PrivacyLoss(2 * 10**8, 0, 7)))
    Publisher(world.database, log).look()
    if not counted:
        states = log.published.values()
        log = HeadsLog(tmp_path / "early.log")
        log.begin(1)
        log.publish([replace(one, charged=loss("0.2"), limits=()) for one in states], 2)
    restore(world, backup)
    Publisher(world.database, log).look()
    accept(world.database, log)
    rho = 7 if counted else pure_femto(2 * 10**8)
    assert world.charged(dataset, analyst) == (PrivacyLoss(2 * 10**8, 0, rho),) * 2
    assert verify(world.database).first_bad is None


def test_lost_heads_leave_no_room_in_rho(world: World, log: HeadsLog) -> None:
    """The lost charges may have been admitted by ε, and then exceed the limit in ρ."""
    both, rho = Limit.of(loss("5"), 10**9), pure_femto(5 * 10**9)
    dataset, analyst = world.ready(both, both)
    backup = backed_up(world)
    world.ledger.reserve(request(dataset, analyst, PrivacyLoss(5 * 10**9, 0, rho)))
    Publisher(world.database, log).look()
    restore(world, backup)
    Publisher(world.database, log).look()
    accept(world.database, log, heads_lost=True)
    account = world.ledger.account(dataset.id, analyst.id)
    assert account is not None
    assert both.rho_femto < account.account.limit.rho_femto
    assert account.account.limit.rho_femto == account.account.charged.rho_femto == rho
    assert account.account.largest_epsilon == 0
    assert verify(world.database).valid


def test_lost_heads_leave_no_room_where_gaussian_noise_was_allowed(
    world: World, log: HeadsLog
) -> None:
    """The lost charge had no finite ε, so ε may admit nothing any longer, also after a raise."""
    allowed = Limit.of(loss("5"), 10**9, gaussian=True)
    dataset, analyst = world.ready(allowed, allowed)
    backup = backed_up(world)
    world.ledger.reserve(request(dataset, analyst, PrivacyLoss(0, 0, 7, 1)))
    Publisher(world.database, log).look()
    restore(world, backup)
    Publisher(world.database, log).look()
    accept(world.database, log, heads_lost=True)
    account = world.ledger.account(dataset.id, analyst.id)
    assert account is not None
    charged = account.account.charged
    assert (charged.unpriced, charged.rho_femto) == (1, 7 + pure_femto(5 * 10**9))
    assert account.account.largest_epsilon == 0
    assert verify(world.database).valid


#: δ_c (the δ that counting in ρ adds) of 10⁻⁶, in units of 10⁻¹⁸.
SMALL = 10**12


def small_queries(world: World, dataset: Any, analyst: Any, times: int) -> None:
    """One charge with the amounts of so many queries of ε = 0.01."""
    amounts = PrivacyLoss(10**7, 0, pure_femto(10**7)) * times
    world.ledger.reserve(request(dataset, analyst, amounts))


def account_of(world: World, dataset: Any, analyst: Any) -> Account:
    row = world.ledger.account(dataset.id, analyst.id)
    assert row is not None
    return row.account


def test_a_lost_delta_is_put_back_without_a_larger_epsilon(world: World, log: HeadsLog) -> None:
    """What fitted by ρ alone makes no promise of ε larger."""
    dataset, analyst = world.ready(loss(1), loss(1))
    charge(world, dataset, analyst, "0.3")
    backup = backed_up(world)
    limit = Limit.of(loss(1), SMALL)
    world.ledger.limit_cap(dataset.id, limit, actor_id=world.owner.id)
    world.grant(dataset, analyst, limit)
    for _ in range(3):
        small_queries(world, dataset, analyst, 120)
    before = account_of(world, dataset, analyst)
    assert before.charged.epsilon_nano > limit.epsilon_nano
    Publisher(world.database, log).look()
    restore(world, backup)
    Publisher(world.database, log).look()
    accept(world.database, log)
    assert account_of(world, dataset, analyst) == before
    assert world.ledger.cap(dataset.id).account == before
    assert verify(world.database, heads=log.published).first_bad is None
    assert Publisher(world.database, log).look() == []
    small_queries(world, dataset, analyst, 120)


def test_the_rho_that_was_filled_in_is_not_lost(world: World, log: HeadsLog) -> None:
    """The entry that filled it in is lost; so it is written again, in the frozen account."""
    dataset, analyst = world.ready(loss(1001), loss(1001))
    world.ledger.reserve(request(dataset, analyst, PrivacyLoss(10**8, 0, 5)))
    backup = backed_up(world)
    limit = Limit.of(loss(1), SMALL)
    world.grant(dataset, analyst, limit)
    for _ in range(2):
        small_queries(world, dataset, analyst, 100)
    before = account_of(world, dataset, analyst)
    Publisher(world.database, log).look()
    restore(world, backup)
    Publisher(world.database, log).look()
    accept(world.database, log)
    assert account_of(world, dataset, analyst) == before
    assert verify(world.database).first_bad is None


def test_charges_beyond_1000_are_accepted(world: World, log: HeadsLog) -> None:
    limit, more = Limit.of(loss(1), SMALL), Limit.of(loss(10), SMALL)
    dataset, analyst = world.ready(limit, limit)
    backup = backed_up(world)
    world.grant(dataset, analyst, more)
    world.ledger.limit_cap(dataset.id, more, actor_id=world.owner.id)
    charges = PrivacyLoss(2 * 10**6, 0, pure_femto(2 * 10**6)) * 100_000
    for _ in range(6):
        world.ledger.reserve(request(dataset, analyst, charges))
    before = account_of(world, dataset, analyst)
    Publisher(world.database, log).look()
    restore(world, backup)
    Publisher(world.database, log).look()
    accept(world.database, log)
    assert account_of(world, dataset, analyst) == before
    assert verify(world.database).first_bad is None


def test_what_no_known_limit_holds_closes_the_account(
    world: World, log: HeadsLog, tmp_path: Path
) -> None:
    """A line of an earlier version has no limits, so nobody knows which raise was lost."""
    limit, more = Limit.of(loss(1), SMALL), Limit.of(loss(2), SMALL)
    dataset, analyst = world.ready(limit)
    backup = backed_up(world)
    world.grant(dataset, analyst, more)
    small_queries(world, dataset, analyst, 120)
    Publisher(world.database, log).look()
    early = HeadsLog(tmp_path / "early.log")
    early.begin(1)
    early.publish([replace(one, limits=()) for one in log.published.values()], 2)
    restore(world, backup)
    Publisher(world.database, early).look()
    accept(world.database, early)
    account = account_of(world, dataset, analyst)
    assert (account.limit.loss, account.limit.composition_atto) == (limit.loss, SMALL)
    assert account.charged.rho_femto == account.limit.rho_femto == pure_femto(1_200_000_000)
    assert account.largest_epsilon == 0
    assert verify(world.database).first_bad is None
    with pytest.raises(BelowSpent):
        world.grant(dataset, analyst, more)
    world.grant(dataset, analyst, Limit.of(loss(10), SMALL))
    small_queries(world, dataset, analyst, 1)
    assert verify(world.database).first_bad is None


def test_lost_heads_leave_nothing_to_fit_by_epsilon(world: World, log: HeadsLog) -> None:
    """The lost charges may have been admitted by ρ, and then exceed the limit in ε."""
    limit = Limit.of(loss(1), SMALL)
    dataset, analyst = world.ready(limit, limit)
    backup = backed_up(world)
    for _ in range(4):
        small_queries(world, dataset, analyst, 120)
    ids = [row.id for row in (world.ledger.cap(dataset.id), *world.ledger.accounts())]
    restore(world, backup)
    at_us = world.now()
    world.database.write(lambda connection: freeze(connection, ids, at_us))
    accept(world.database, log, heads_lost=True)
    for raised in (Limit.of(loss(4)), Limit.of(loss(2), SMALL)):
        with pytest.raises(BelowSpent):
            world.grant(dataset, analyst, raised)
    assert account_of(world, dataset, analyst).largest_epsilon == 0
    world.grant(dataset, analyst, Limit.of(loss(10), SMALL))
    with pytest.raises(CapExhausted):
        small_queries(world, dataset, analyst, 1)
    assert verify(world.database).first_bad is None


def test_charges_that_an_account_never_counted_are_not_published_as_counted(
    world: World, log: HeadsLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset, analyst = world.ready(loss(1), loss(1))
    backup = backed_up(world)
    with monkeypatch.context() as patch:
        # This charge counts in ε alone, as all charges did before schema 0009 introduced ρ.
        patch.setattr(charging, "counts_rho", lambda _limit: False)
        charge(world, dataset, analyst, "0.9")
    small_queries(world, dataset, analyst, 5)
    Publisher(world.database, log).look()
    restore(world, backup)
    Publisher(world.database, log).look()
    accept(world.database, log)
    charged = account_of(world, dataset, analyst).charged
    assert charged.rho_femto >= pure_femto(9 * 10**8) + 5 * pure_femto(10**7)
    with pytest.raises(BelowSpent):
        world.grant(dataset, analyst, Limit.of(loss("0.9"), SMALL))
    world.grant(dataset, analyst, Limit.of(loss(1), SMALL))
    small_queries(world, dataset, analyst, 5)
    with pytest.raises(BudgetExhausted):
        small_queries(world, dataset, analyst, 1)
    assert verify(world.database).first_bad is None
