"""What a query begins with: the same as the ledger says, without its transaction."""

from __future__ import annotations

from dataclasses import replace

import pytest

from accounting.account import AccountRank
from accounting.errors import AccountFrozen, BudgetExhausted, CapExhausted
from storage.catalogue.datasets import StoredDataset
from storage.database.tables import budget_account
from storage.errors import KeyReused, NotFound, StillRunning
from storage.ledger.ledger import Replay, Reservation
from storage.people.key_scopes import KeyScope
from storage.people.users import User
from storage.queries.lookup import LookedUp, QueryLookup
from tests.support.world import BODY_HASH, World, allowance, contents, loss, request

OTHER_HASH = bytes(32)


@pytest.fixture
def asking(world: World) -> QueryLookup:
    return QueryLookup(world.database, world.datasets, world.ledger.ledger)


def look_up(
    asking: QueryLookup, dataset: StoredDataset, analyst: User, key: str | None = "k"
) -> LookedUp:
    result = asking.look_up(dataset.name, analyst, key, BODY_HASH)
    assert isinstance(result, LookedUp)
    return result


def freeze(world: World, rank: AccountRank) -> None:
    with world.database.engine.begin() as connection:
        accounts = budget_account.update().where(budget_account.c.rank == int(rank))
        connection.execute(accounts.values(frozen=1))


def test_what_fits_is_not_refused(world: World, asking: QueryLookup) -> None:
    dataset, analyst = world.ready(loss("0.5"))
    result = look_up(asking, dataset, analyst)
    existing = world.datasets.find(dataset.name)
    expected = existing.id, existing.name, existing.version, existing.public
    assert (result.id, result.name, result.version, result.facts.public) == expected
    assert result.refusal(loss("0.5")) is None


@pytest.mark.parametrize(
    "own, overall, cap, kind",
    [
        ("0.5", None, "5", BudgetExhausted),
        ("5", "0.5", "5", BudgetExhausted),
        ("5", None, "0.5", CapExhausted),
        ("0.5", "0.6", "0.7", BudgetExhausted),
    ],
)
def test_a_refusal_is_the_one_of_the_ledger(
    world: World,
    asking: QueryLookup,
    own: str,
    overall: str | None,
    cap: str,
    kind: type[Exception],
) -> None:
    dataset, analyst = world.ready(loss(own), loss(cap))
    if overall is not None:
        world.ledger.grant(None, analyst.id, allowance(overall), actor_id=world.admin.id)
    before = contents(world.database)
    refusal = look_up(asking, dataset, analyst).refusal(loss("0.9"))
    with pytest.raises(kind) as message:
        world.ledger.reserve(request(dataset, analyst, loss("0.9"), key="k"))
    assert type(refusal) is kind
    assert vars(refusal) == vars(message.value)
    assert str(refusal) == str(message.value)
    assert contents(world.database) == before


@pytest.mark.parametrize("own, cap", [("0.5", "9"), ("9", "0.5")])
def test_delta_is_refused_alike(world: World, asking: QueryLookup, own: str, cap: str) -> None:
    dataset, analyst = world.ready(loss(own, "0.001"), loss(cap, "0.001"))
    charge = loss("0.1", "0.002")
    refusal = look_up(asking, dataset, analyst).refusal(charge)
    with pytest.raises(BudgetExhausted) as message:
        world.ledger.reserve(request(dataset, analyst, charge, key="k"))
    assert vars(refusal) == vars(message.value)


def test_the_account_of_the_key_refuses_first(world: World, asking: QueryLookup) -> None:
    dataset, analyst = world.ready(loss(5))
    limited_key = world.limited_key(analyst, loss("0.2"))
    with_key = replace(analyst, scope=KeyScope(limited_key))
    looked_up = look_up(asking, dataset, with_key)
    assert looked_up.refusal(loss("0.2")) is None
    assert looked_up.fits_more(loss("0.1")) == 2
    refusal = looked_up.refusal(loss("0.3"))
    with pytest.raises(BudgetExhausted) as message:
        world.ledger.reserve(request(dataset, analyst, loss("0.3"), limited_key=limited_key))
    assert vars(refusal) == vars(message.value)
    assert isinstance(refusal, BudgetExhausted)
    assert refusal.remaining == loss("0.2")
    assert look_up(asking, dataset, analyst).refusal(loss("0.3")) is None


def test_a_key_finds_only_its_datasets(world: World, asking: QueryLookup) -> None:
    dataset, analyst = world.ready(loss(5))
    elsewhere = world.dataset()
    reservation = world.ledger.reserve(request(dataset, analyst, key="k"))
    assert isinstance(reservation, Reservation)
    scoped = replace(analyst, scope=KeyScope(datasets=frozenset({elsewhere.id})))
    # The API key does not admit this dataset, so the reply must not even reveal that the query
    # runs.
    with pytest.raises(NotFound):
        asking.look_up(dataset.name, scoped, "k", BODY_HASH)
    assert world.ledger.settle(reservation, status=201, body=b"x", release_us=0)
    # Nor is the stored answer sent again to an API key that does not admit the dataset.
    for key in ("k", "new", None):
        with pytest.raises(NotFound):
            asking.look_up(dataset.name, scoped, key, BODY_HASH)
    scoped = replace(analyst, scope=KeyScope(datasets=frozenset({dataset.id})))
    assert isinstance(asking.look_up(dataset.name, scoped, "k", BODY_HASH), Replay)


@pytest.mark.parametrize("rank", AccountRank)
def test_a_frozen_account_refuses(world: World, asking: QueryLookup, rank: AccountRank) -> None:
    dataset, analyst = world.ready(loss(5))
    world.ledger.grant(None, analyst.id, allowance(5), actor_id=world.admin.id)
    limited_key = world.limited_key(analyst, loss(5))
    analyst = replace(analyst, scope=KeyScope(limited_key))
    freeze(world, rank)
    assert isinstance(look_up(asking, dataset, analyst).refusal(loss("0.1")), AccountFrozen)


def test_a_known_key_is_never_refused(world: World, asking: QueryLookup) -> None:
    dataset, analyst = world.ready(loss("0.1"))
    reservation = world.ledger.reserve(request(dataset, analyst, key="k"))
    assert isinstance(reservation, Reservation)
    with pytest.raises(StillRunning):
        asking.look_up(dataset.name, analyst, "k", BODY_HASH)
    world.lapse()
    # The account has nothing left, but a new attempt at a charged query is not charged again. So it
    # is not refused.
    assert look_up(asking, dataset, analyst).refusal(loss("0.1")) is None
    assert isinstance(
        look_up(asking, dataset, analyst, "new").refusal(loss("0.1")), BudgetExhausted
    )
    assert isinstance(look_up(asking, dataset, analyst, None).refusal(loss("0.1")), BudgetExhausted)


def test_a_stored_reply_comes_back(world: World, asking: QueryLookup) -> None:
    dataset, analyst = world.ready(loss("0.1"))
    reservation = world.ledger.reserve(request(dataset, analyst, key="k"))
    assert isinstance(reservation, Reservation)
    assert world.ledger.settle(reservation, status=201, body=b"answer", release_us=0)
    stored = Replay(reservation.query_id, 201, b"answer")
    assert asking.look_up(dataset.name, analyst, "k", BODY_HASH) == stored
    with pytest.raises(KeyReused):
        asking.look_up(dataset.name, analyst, "k", OTHER_HASH)
    with pytest.raises(KeyReused):
        asking.look_up("no-such-dataset", analyst, "k", OTHER_HASH)


def test_what_may_not_be_seen_is_not_there(world: World, asking: QueryLookup) -> None:
    dataset, analyst = world.ready(loss(1))
    stranger = world.analyst()
    for who in (stranger, world.owner, world.admin):
        seen = who is not stranger
        if seen:
            # The owner and the admin may see the dataset. They have no account there, but only the
            # ledger refuses a charge for that reason, and this look-up does not.
            assert look_up(asking, dataset, who).refusal(loss(200)) is None
        else:
            with pytest.raises(NotFound):
                asking.look_up(dataset.name, who, None, BODY_HASH)
            with pytest.raises(NotFound):
                world.ledger.reserve(request(dataset, who))
    with pytest.raises(NotFound):
        asking.look_up("no-such-dataset", analyst, None, BODY_HASH)
