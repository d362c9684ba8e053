"""A constraint that fires freezes the accounts of the query that made it fire, and no others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import select, update

from accounting.errors import AccountFrozen
from storage.assurance.heads import HeadsLog
from storage.assurance.rollback import accept
from storage.assurance.verification import verify
from storage.database.database import Database
from storage.database.tables import budget_account, entry, query
from storage.errors import LedgerAlarm
from storage.journal.layouts import EntryKind
from storage.ledger import charging, entries
from storage.ledger.freezing import OPERATOR
from storage.ledger.ledger import Reservation
from tests.support import tampering
from tests.support.blocking import BlockingLedger
from tests.support.seeded import Edited
from tests.support.world import MINUTE, World, loss, request

RecordedAlarms = list[tuple[list[int], int]]


@pytest.fixture
def database(empty_url: str, tmp_path: Path) -> Iterator[Database]:
    """A database of its own: its schema is spoilt."""
    database = Database.open(empty_url, tmp_path)
    yield database
    database.close()


@pytest.fixture
def recorded(world: World) -> RecordedAlarms:
    """The alarms of the ledger of ``world``, in order."""
    recorded: RecordedAlarms = []
    world.ledger = BlockingLedger(
        world.database,
        lease_us=MINUTE,
        on_alarm=lambda accounts, at_us: recorded.append((list(accounts), at_us)),
    )
    return recorded


@pytest.fixture
def unguarded(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Takes the guard on ε away, so that only the constraint stands; again: puts it back."""
    # The test changes two SQL statements: the look-up reads a charged ε of 0, and the UPDATE does
    # not check the sum. So only the CHECK of the table refuses a charge beyond the limit.
    stale = Edited(charging.ACCOUNTS, "budget_account.charged_eps_n", "0 AS charged_eps_n")
    spoilt = Edited(entries.CHARGE, r"budget_account.charged_eps_n \+ ([^ ]+) <=", r"0 * \1 <=")
    states = [(stale, spoilt), (charging.ACCOUNTS, entries.CHARGE)]

    def take_turns() -> None:
        for name, statement in zip(("ACCOUNTS", "CHARGE"), states.pop(0), strict=True):
            monkeypatch.setattr(charging, name, statement)

    return take_turns


def frozen(database: Database) -> set[int]:
    c = budget_account.c
    with database.read() as connection:
        return set(connection.execute(select(c.id).where(c.frozen == 1)).scalars())


def test_the_accounts_of_the_query_are_frozen(
    world: World, recorded: RecordedAlarms, unguarded: Callable[[], None], tmp_path: Path
) -> None:
    dataset, analyst = world.ready(loss(1))
    other_dataset, other = world.ready(loss(5))
    account = world.ledger.account(dataset.id, analyst.id)
    assert account is not None
    own = {account.id, world.ledger.cap(dataset.id).id}
    reservation = world.ledger.reserve(request(dataset, analyst, loss("0.4")))
    assert isinstance(reservation, Reservation)
    unguarded()
    requested = [request(other_dataset, other, loss("0.1")) for _ in range(5)]
    requested.append(request(dataset, analyst, loss("0.7")))
    # The requests share batches. Only the one that exceeds its limit is removed from its batch.
    with ThreadPoolExecutor(6) as threads:
        *others, bad = [threads.submit(world.ledger.reserve, one) for one in requested]
        assert all(isinstance(one.result(), Reservation) for one in others)
        with pytest.raises(LedgerAlarm):
            bad.result()
    assert frozen(world.database) == own
    ((accounts, at_us),) = recorded
    assert set(accounts) == own
    unguarded()
    with pytest.raises(AccountFrozen):
        world.ledger.reserve(request(dataset, analyst, loss("0.1")))
    # A query that was running before the freeze may still be answered, because it is charged
    # already.
    assert world.ledger.settle(reservation, status=201, body=b"x", release_us=0)
    assert verify(world.database).valid
    with world.database.read() as connection:
        freezes = connection.execute(
            select(entry.c.actor, entry.c.at_us).where(entry.c.kind == int(EntryKind.FREEZE))
        ).all()
    assert list(map(tuple, freezes)) == [(OPERATOR, at_us)] * 2
    log = HeadsLog(tmp_path / "heads.log")
    log.mark({at_us})
    assert {one.account for one in accept(world.database, log)} == own
    assert isinstance(world.ledger.reserve(request(dataset, analyst, loss("0.1"))), Reservation)
    assert verify(world.database).valid


def test_an_honest_ledger_never_rings(world: World, recorded: RecordedAlarms) -> None:
    dataset, analyst = world.ready(loss(1))
    reservation = world.ledger.reserve(request(dataset, analyst, key="k"))
    assert isinstance(reservation, Reservation)
    assert world.ledger.renew(reservation)
    world.lapse()
    again = world.ledger.reserve(request(dataset, analyst, key="k"))
    assert isinstance(again, Reservation)
    assert not world.ledger.release(reservation)
    assert not world.ledger.settle(reservation, status=201, body=b"x", release_us=0)
    assert world.ledger.settle(again, status=201, body=b"x", release_us=0)
    assert recorded == []
    assert frozen(world.database) == set()


def test_an_account_that_cannot_be_frozen_rings_all_the_same(
    world: World, recorded: RecordedAlarms
) -> None:
    """PostgreSQL takes no change at all of a row that is beyond its limit: nor any charge."""
    dataset, analyst = world.ready(loss(1))
    assert isinstance(world.ledger.reserve(request(dataset, analyst)), Reservation)
    reservation = world.ledger.reserve(request(dataset, analyst, key="k"))
    assert isinstance(reservation, Reservation)
    account = world.ledger.account(dataset.id, analyst.id)
    assert account is not None
    url = world.database.engine.url.render_as_string(hide_password=False)
    beyond = update(budget_account).where(budget_account.c.id == account.id)
    with world.database.engine.begin() as connection:
        if not world.database.embedded:
            # PostgreSQL checks a constraint that is NOT VALID only for later changes. So the row
            # that exceeds its limit stays, as if the constraint had been missing when it was
            # written.
            name = connection.exec_driver_sql(
                "SELECT conname FROM pg_constraint WHERE conrelid = 'budget_account'::regclass "
                "AND pg_get_constraintdef(oid) LIKE '%%charged_eps_n%%'"
            ).scalar_one()
            connection.exec_driver_sql(f"ALTER TABLE budget_account DROP CONSTRAINT {name}")
            connection.execute(beyond.values(lim_eps_n=1))
            connection.exec_driver_sql(
                f"ALTER TABLE budget_account ADD CONSTRAINT {name} "
                "CHECK (charged_eps_n BETWEEN 0 AND lim_eps_n) NOT VALID"
            )
    if world.database.embedded:
        with tampering.tampering(url) as run:
            run(beyond.values(lim_eps_n=1, charged_eps_n=10**9))
    with pytest.raises(LedgerAlarm):
        world.ledger.release(reservation)
    expected = {world.ledger.cap(dataset.id).id} | (
        {account.id} if world.database.embedded else set()
    )
    assert frozen(world.database) == expected
    assert [set(accounts) for accounts, _ in recorded] == [expected]
    with world.database.read() as connection:
        assert set(connection.execute(select(query.c.state)).scalars()) == {0}
