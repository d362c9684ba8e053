"""What notices are made of, on both databases."""

from __future__ import annotations

from storage.ledger.freezing import freeze
from storage.queries.notices import (
    Freeze,
    freezes,
    last_changes,
    limits_set_at,
    versions_ready,
)
from tests.support.world import World, loss, request


def test_a_version_is_news_for_its_owner_from_its_moment_on(world: World) -> None:
    dataset = world.dataset()
    world.dataset(ready=False)
    (ready,) = versions_ready(world.database, 0, world.owner.id)
    assert (ready.dataset, ready.version) == (dataset.name, 1)
    assert versions_ready(world.database, ready.at_us, world.owner.id) == [ready]
    assert versions_ready(world.database, ready.at_us + 1, world.owner.id) == []
    assert versions_ready(world.database, world.admin.id, 0) == []
    world.versions.withdraw(dataset.name, actor=world.owner)
    assert versions_ready(world.database, 0, world.owner.id) == []


def test_a_freeze_concerns_the_analyst_and_the_owner_of_the_dataset(world: World) -> None:
    dataset, analyst = world.ready(loss(1))
    elsewhere, stranger = world.ready(loss(1))
    cap = world.ledger.cap(dataset.id).id
    now = world.now()
    world.database.write(lambda connection: freeze(connection, [cap], now))
    expected = [Freeze(dataset.name, now)]
    assert freezes(world.database) == expected
    assert freezes(world.database, owner_id=world.owner.id) == expected
    assert freezes(world.database, analyst_id=analyst.id) == expected
    assert freezes(world.database, analyst_id=stranger.id) == []
    assert freezes(world.database, analyst_id=analyst.id, datasets={elsewhere.id}) == []
    assert freezes(world.database, analyst_id=analyst.id, datasets={dataset.id}) == expected


def test_the_last_change_of_an_account_is_that_of_its_last_entry(world: World) -> None:
    dataset, analyst = world.ready(loss(1))
    account = world.ledger.account(dataset.id, analyst.id)
    assert account is not None
    before = last_changes(world.database, [account.id])
    reservation = world.ledger.reserve(request(dataset, analyst))
    assert before[account.id] < last_changes(world.database, [account.id])[account.id]
    assert last_changes(world.database, [account.id]) == {account.id: reservation.reserved_us}


def test_a_limit_is_set_by_its_last_change_and_not_by_charges(world: World) -> None:
    dataset, analyst = world.ready(loss(1))
    world.ledger.reserve(request(dataset, analyst))
    account = world.ledger.account(dataset.id, analyst.id)
    assert account is not None
    assert limits_set_at(world.database, [account.id]) == {account.id: 1}
    world.grant(dataset, analyst, loss(2))
    changed = world.ledger.account(dataset.id, analyst.id)
    assert changed is not None
    assert limits_set_at(world.database, [account.id]) == {account.id: changed.seq}
