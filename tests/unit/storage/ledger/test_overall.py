"""An account over all datasets: opened with everything that stands, however many queries race."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from accounting.account import Limit
from accounting.errors import BelowSpent, BudgetExhausted
from accounting.privacy_loss import PrivacyLoss
from storage.assurance.verification import verify
from storage.ledger.ledger import Reservation
from tests.support.world import World, allowance, loss, request


def charge(world: World, dataset: Any, analyst: Any, epsilon: str = "0.1") -> Reservation:
    created = world.ledger.reserve(request(dataset, analyst, loss(epsilon)))
    assert isinstance(created, Reservation)
    return created


def overall(world: World, analyst: Any) -> PrivacyLoss:
    account = world.ledger.account(None, analyst.id)
    assert account is not None
    return account.account.charged


def test_it_bounds_the_sum_over_datasets(world: World) -> None:
    first, analyst = world.ready(loss(5))
    second = world.dataset()
    world.grant(second, analyst, loss(5))
    world.ledger.grant(None, analyst.id, allowance("0.5", "0.1"), actor_id=world.admin.id)
    charge(world, first, analyst, "0.3")
    charge(world, second, analyst, "0.2")
    with pytest.raises(BudgetExhausted) as refused:
        charge(world, first, analyst, "0.1")
    assert refused.value.remaining == loss(0, "0.1")
    assert world.charged(first, analyst) == (loss("0.3"), loss("0.3"))
    assert verify(world.database).valid
    own = verify(world.database).extent_of(1, lambda row: row.analyst_id == analyst.id)
    assert own.accounts == 3


def test_it_starts_at_what_was_charged(world: World) -> None:
    first, analyst = world.ready(loss(5))
    second = world.dataset()
    world.grant(second, analyst, loss(5))
    reservation = charge(world, first, analyst, "0.3")
    settled = charge(world, second, analyst, "0.2")
    assert world.ledger.settle(settled, status=201, body=b"x", release_us=0)
    given_back = charge(world, second, analyst, "0.7")
    assert world.ledger.release(given_back)
    with pytest.raises(BelowSpent) as refused:
        world.ledger.grant(None, analyst.id, allowance("0.4"), actor_id=world.admin.id)
    assert refused.value.spent == loss("0.5")
    assert world.ledger.account(None, analyst.id) is None
    world.ledger.grant(None, analyst.id, allowance(1), actor_id=world.admin.id)
    assert overall(world, analyst) == loss("0.5")
    assert verify(world.database).valid
    # A query that was running when the account over all datasets was opened gives its charge back
    # to this account too.
    assert world.ledger.release(reservation)
    assert overall(world, analyst) == loss("0.2")
    assert verify(world.database).valid


def test_the_limit_moves_but_not_below_what_is_spent(world: World) -> None:
    dataset, analyst = world.ready(loss(5))
    world.ledger.grant(None, analyst.id, allowance(1), actor_id=world.admin.id)
    charge(world, dataset, analyst, "0.6")
    with pytest.raises(BelowSpent):
        world.ledger.grant(None, analyst.id, allowance("0.5"), actor_id=world.admin.id)
    account = world.ledger.grant(None, analyst.id, allowance("0.6"), actor_id=world.admin.id)
    assert account.account.remaining == PrivacyLoss(0)
    assert verify(world.database).valid


def test_sums_beyond_64_bits_are_refused_not_wrapped(world: World) -> None:
    analyst = world.analyst()
    for _ in range(10):
        dataset = world.dataset(loss(10**9))
        world.grant(dataset, analyst, loss(10**9))
        charge(world, dataset, analyst, str(10**9))
    with pytest.raises(BelowSpent) as refused:
        world.ledger.grant(None, analyst.id, allowance(10**9), actor_id=world.admin.id)
    assert refused.value.spent == loss(10**9) * 10


@pytest.mark.long
@pytest.mark.parametrize("round", range(3))
def test_queries_that_race_with_the_opening_are_all_counted(world: World, round: int) -> None:
    """Charged before it, or charged to it: whatever stands against the datasets stands here."""
    del round
    first, analyst = world.ready(loss(100))
    second = world.dataset()
    world.grant(second, analyst, loss(100))
    start = threading.Event()

    def ask(number: int) -> None:
        start.wait()
        created = charge(world, (first, second)[number % 2], analyst, "0.01")
        if number % 3 == 0:
            assert world.ledger.release(created)
        elif number % 3 == 1:
            assert world.ledger.settle(created, status=201, body=b"x", release_us=0)

    with ThreadPoolExecutor(17) as threads:
        request = [threads.submit(ask, number) for number in range(120)]
        start.set()
        world.ledger.grant(None, analyst.id, allowance(10), actor_id=world.admin.id)
        for one in request:
            one.result()
    spent = sum((world.charged(d, analyst)[0] for d in (first, second)), PrivacyLoss(0))
    assert overall(world, analyst) == spent == loss("0.8")
    assert verify(world.database).valid


def test_it_does_not_open_on_charges_without_a_finite_epsilon(world: World) -> None:
    allowed = Limit.of(loss(1), 10**12, gaussian=True)
    dataset, analyst = world.ready(allowed, allowed)
    charged = request(dataset, analyst, PrivacyLoss(0, 0, 10**12, 1))
    assert isinstance(world.ledger.reserve(charged), Reservation)
    with pytest.raises(BelowSpent):
        world.ledger.grant(None, analyst.id, allowance(10**6), actor_id=world.admin.id)
    assert world.ledger.account(None, analyst.id) is None


def test_it_opens_while_a_query_runs_whose_account_counts_epsilon_alone(world: World) -> None:
    """Beyond ε = 1,000 an account holds no ρ, which its running query has all the same."""
    dataset, analyst = world.ready(loss(2000), cap=loss(3000))
    price = PrivacyLoss(10**8, 0, 5 * 10**12)
    created = world.ledger.reserve(request(dataset, analyst, price))
    assert isinstance(created, Reservation)
    world.ledger.grant(None, analyst.id, allowance(10), actor_id=world.admin.id)
    assert overall(world, analyst).epsilon_nano == 10**8
    assert verify(world.database).valid
    assert world.ledger.release(created)
    assert overall(world, analyst) == PrivacyLoss(0)
