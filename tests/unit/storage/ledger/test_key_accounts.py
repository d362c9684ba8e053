"""An API key with a limit: an account of its own, charged together with those of its user."""

from __future__ import annotations

import pytest
from sqlalchemy import update

from accounting.account import AccountRank, Limit
from accounting.errors import BudgetExhausted, CapExhausted
from accounting.privacy_loss import PrivacyLoss
from storage.assurance.verification import verify
from storage.database.tables import budget_account
from storage.errors import NotFound
from storage.ledger.ledger import Replay, Reservation
from storage.queries.entry_pages import page_of_entries
from tests.support.tampering import tampering
from tests.support.world import World, allowance, check_invariants, loss, request


def spent(world: World, analyst_id: int, key_id: str) -> object:
    return world.ledger.accounts_of_keys(analyst_id)[key_id].account.charged


def test_a_query_is_charged_to_its_key_and_to_its_user(world: World) -> None:
    dataset, analyst = world.ready(loss(1, "0.1"))
    key = world.limited_key(analyst, loss("0.5", "0.01"))
    other = world.limited_key(analyst, loss("0.5", "0.01"))
    reservation = world.ledger.reserve(
        request(dataset, analyst, loss("0.3", "0.01"), limited_key=key)
    )
    assert isinstance(reservation, Reservation)
    assert spent(world, analyst.id, key) == loss("0.3", "0.01")
    assert spent(world, analyst.id, other) == loss(0)
    assert world.charged(dataset, analyst) == (loss("0.3", "0.01"),) * 2
    assert world.ledger.settle(reservation, status=201, body=b"x", release_us=0)
    charges = [e for e in page_of_entries(world.database).items if e.kind == "charge"]
    ranks = {(e.rank, e.key_id, e.query_id, e.head == reservation.receipt) for e in charges}
    assert ranks == {
        (AccountRank.KEY, key, reservation.query_id, False),
        (AccountRank.ANALYST_ON_DATASET, "", reservation.query_id, True),
        (AccountRank.DATASET, "", reservation.query_id, False),
    }
    check_invariants(world.database)
    assert verify(world.database).first_bad is None


def test_the_limit_of_a_key_holds_over_all_datasets(world: World) -> None:
    dataset, analyst = world.ready(loss(1))
    elsewhere = world.dataset()
    world.grant(elsewhere, analyst, loss(1))
    key = world.limited_key(analyst, loss("0.5"))
    for one in (dataset, elsewhere):
        world.ledger.reserve(request(one, analyst, loss("0.25"), limited_key=key))
    with pytest.raises(BudgetExhausted) as refusal:
        world.ledger.reserve(request(dataset, analyst, loss("0.1"), limited_key=key))
    assert refusal.value.remaining == loss(0)
    # The limit binds this API key alone. Without the key, its user may send further queries.
    assert world.ledger.reserve(request(dataset, analyst, loss("0.1")))
    check_invariants(world.database)


def test_a_key_with_a_limit_takes_no_release_without_a_finite_epsilon(world: World) -> None:
    """Its limit is in ε, which such a release would leave without meaning."""
    both = Limit.of(loss(5), 10**12, gaussian=True)
    dataset, analyst = world.ready(both, both)
    gaussian, key = PrivacyLoss(0, 0, 10**10, 1), world.limited_key(analyst, loss(5))
    with pytest.raises(BudgetExhausted):
        world.ledger.reserve(request(dataset, analyst, gaussian, limited_key=key))
    assert spent(world, analyst.id, key) == loss(0)
    assert world.ledger.reserve(request(dataset, analyst, gaussian))
    check_invariants(world.database)
    assert verify(world.database).first_bad is None


def test_a_key_spends_no_more_than_its_user_may(world: World) -> None:
    dataset, analyst = world.ready(loss("0.2"), cap=loss("0.3"))
    key = world.limited_key(analyst, loss(5))
    with pytest.raises(BudgetExhausted) as refusal:
        world.ledger.reserve(request(dataset, analyst, loss("0.25"), limited_key=key))
    assert refusal.value.remaining == loss("0.2")
    world.grant(dataset, analyst, loss(5))
    with pytest.raises(CapExhausted):
        world.ledger.reserve(request(dataset, analyst, loss("0.35"), limited_key=key))
    assert spent(world, analyst.id, key) == loss(0)


def test_a_release_returns_the_charge_of_the_key(world: World) -> None:
    dataset, analyst = world.ready(loss(1))
    world.ledger.grant(None, analyst.id, allowance(2), actor_id=world.admin.id)
    key = world.limited_key(analyst, loss("0.5"))
    reservation = world.ledger.reserve(request(dataset, analyst, loss("0.5"), limited_key=key))
    assert isinstance(reservation, Reservation)
    assert world.ledger.release(reservation)
    assert spent(world, analyst.id, key) == loss(0)
    assert world.charged(dataset, analyst) == (loss(0), loss(0))
    check_invariants(world.database)
    assert verify(world.database).first_bad is None


def test_a_retry_is_free_with_any_key_of_the_user(world: World) -> None:
    dataset, analyst = world.ready(loss(1))
    key = world.limited_key(analyst, loss("0.1"))
    first = world.ledger.reserve(request(dataset, analyst, key="k", limited_key=key))
    assert isinstance(first, Reservation)
    world.lapse()
    again = world.ledger.reserve(request(dataset, analyst, key="k"))
    assert isinstance(again, Reservation)
    assert again.attempt == 2
    assert world.ledger.settle(again, status=201, body=b"x", release_us=0)
    replay = world.ledger.reserve(request(dataset, analyst, key="k", limited_key=key))
    assert isinstance(replay, Replay)
    assert spent(world, analyst.id, key) == loss("0.1")
    check_invariants(world.database)
    assert verify(world.database).first_bad is None


def test_a_key_without_its_account_is_refused(world: World) -> None:
    dataset, analyst = world.ready(loss(1))
    stranger = world.analyst()
    foreign = world.limited_key(stranger, loss(1))
    for key in ("0" * 16, foreign):
        with pytest.raises(NotFound):
            world.ledger.reserve(request(dataset, analyst, limited_key=key))
    assert world.charged(dataset, analyst) == (loss(0), loss(0))


def test_the_chain_binds_an_account_to_its_key(world: World) -> None:
    _dataset, analyst = world.ready(loss(1))
    world.limited_key(analyst, loss("0.5"))
    a = budget_account.c
    renamed = update(budget_account).where(a.key_id != "").values(key_id="f" * 16)
    with tampering(str(world.database.engine.url.render_as_string(False))) as run:
        run(renamed)
    bad = verify(world.database).first_bad
    assert bad is not None
    assert "somebody or something else" in bad.reason
