"""Accounts that count in ρ as well: a charge fits by ε or by ρ, and nothing is forgotten."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from accounting.account import LARGEST_SUM, Limit
from accounting.errors import AccountFrozen, BelowSpent, BudgetExhausted, CapExhausted
from accounting.privacy_loss import ATTO, MAX_EPSILON_NANO, NANO, PrivacyLoss
from accounting.rho import pure_femto
from storage.assurance import verify_chains
from storage.assurance.verification import verify
from storage.catalogue.datasets import StoredDataset
from storage.journal.layouts import EntryKind
from storage.ledger import limits
from storage.ledger.entries import Cause, change_account
from storage.ledger.freezing import freeze
from storage.ledger.ledger import Reservation
from storage.people.users import User
from storage.queries.entry_pages import page_of_entries
from tests.support.blocking import finished
from tests.support.world import World, allowance, check_invariants, contents, loss, request

#: A limit of 10 nano-ε or 100 femto-ρ. The ρ would follow from some δ_c, the δ that counting in ρ
#: adds.
BOTH = Limit(10, 0, 100, 7)
#: The same limits, with the permission for releases that have no finite ε.
ALL = Limit(10, 0, 100, 7, gaussian=True)


def ask(world: World, dataset: StoredDataset, analyst: User, *amounts: int) -> Reservation:
    reservation = world.ledger.reserve(request(dataset, analyst, PrivacyLoss(*amounts)))
    assert isinstance(reservation, Reservation)
    return reservation


def charged(world: World, dataset: StoredDataset, analyst: User) -> tuple[int, ...]:
    return world.charged(dataset, analyst)[0].amounts


def check(world: World) -> None:
    check_invariants(world.database)
    with pytest.MonkeyPatch.context() as patch:
        # The verification checks that a limit in ρ follows from ε and δ_c. The small numbers of
        # these limits do not, so this check is switched off.
        patch.setattr(verify_chains, "holds", lambda *_limit: True)
        assert verify(world.database).first_bad is None


def test_a_charge_fits_by_epsilon_or_by_rho(world: World) -> None:
    dataset, analyst = world.ready(BOTH, BOTH)
    first = ask(world, dataset, analyst, 4, 0, 30)
    ask(world, dataset, analyst, 4, 0, 30)
    # The sum of ε is now 12, beyond the limit of 10. The charge fits because the sum of ρ is 100 of
    # 100.
    ask(world, dataset, analyst, 4, 0, 40)
    before = contents(world.database)
    with pytest.raises(BudgetExhausted):
        ask(world, dataset, analyst, 1, 0, 1)
    assert contents(world.database) == before
    assert charged(world, dataset, analyst) == (12, 0, 100, 0)
    assert world.ledger.release(first)
    assert charged(world, dataset, analyst) == (8, 0, 70, 0)
    # The release of the first charge frees ε. So this charge fits by ε, although it does not fit by
    # ρ.
    ask(world, dataset, analyst, 2, 0, 50)
    assert charged(world, dataset, analyst) == (10, 0, 120, 0)
    check(world)


def test_delta_binds_both_ways(world: World) -> None:
    dataset, analyst = world.ready(Limit(10, 5, 100, 7), Limit(10, 5, 100, 7))
    ask(world, dataset, analyst, 1, 5, 1)
    with pytest.raises(BudgetExhausted):
        ask(world, dataset, analyst, 1, 1, 1)


def test_sums_of_epsilon_stay_within_64_bits_where_rho_admits(world: World) -> None:
    """Danger: SQLite turns a sum that leaves 64 bits into a float."""
    dataset, analyst = world.ready(BOTH, BOTH)
    largest = (MAX_EPSILON_NANO, 0, 1)
    times = LARGEST_SUM // MAX_EPSILON_NANO
    for _ in range(times):
        ask(world, dataset, analyst, *largest)
    with pytest.raises(BudgetExhausted):
        ask(world, dataset, analyst, *largest)
    assert charged(world, dataset, analyst) == (times * MAX_EPSILON_NANO, 0, times, 0)
    check(world)


def test_the_cap_has_a_delta_of_its_own(world: World) -> None:
    """A cap where ε alone counts fills by ε, whatever the allowances promise."""
    dataset, analyst = world.ready(BOTH, Limit(10))
    ask(world, dataset, analyst, 10, 0, 10)
    with pytest.raises(CapExhausted):
        ask(world, dataset, analyst, 1, 0, 1)
    world.ledger.limit_cap(dataset.id, BOTH, actor_id=world.owner.id)
    ask(world, dataset, analyst, 1, 0, 1)
    check(world)


def test_a_release_without_a_finite_epsilon_closes_the_way_by_epsilon(world: World) -> None:
    dataset, analyst = world.ready(ALL, ALL)
    ask(world, dataset, analyst, 0, 0, 1, 1)
    ask(world, dataset, analyst, 5, 0, 99)
    with pytest.raises(BudgetExhausted):
        ask(world, dataset, analyst, 1, 0, 1)
    check(world)


def test_a_release_without_a_finite_epsilon_needs_the_permission_of_account_and_cap(
    world: World,
) -> None:
    for allowed, cap, error in (
        (Limit(10), ALL, BudgetExhausted),
        (BOTH, ALL, BudgetExhausted),
        (ALL, BOTH, CapExhausted),
        (ALL, Limit(10), CapExhausted),
    ):
        dataset, analyst = world.ready(allowed, cap)
        before = contents(world.database)
        with pytest.raises(error):
            ask(world, dataset, analyst, 0, 0, 1, 1)
        assert contents(world.database) == before
    world.ledger.limit_cap(dataset.id, ALL, actor_id=analyst.id)
    first = ask(world, dataset, analyst, 0, 0, 60, 1)
    # An owner may withdraw the permission for releases without a finite ε. The charge that was made
    # under it stays. While it does, further charges fit by ρ alone.
    world.grant(dataset, analyst, BOTH)
    for refused in ((0, 0, 1, 1), (1, 0, 41, 0)):
        with pytest.raises(BudgetExhausted):
            ask(world, dataset, analyst, *refused)
    ask(world, dataset, analyst, 1, 0, 40)
    with pytest.raises(BelowSpent):
        world.grant(dataset, analyst, Limit(10))
    check(world)
    assert world.ledger.release(first)
    # After the release of the charge without a finite ε, charges fit by ε again.
    ask(world, dataset, analyst, 9, 0, 99)
    account = world.ledger.account(dataset.id, analyst.id)
    assert account is not None
    assert account.account.limit == BOTH
    check(world)


def test_two_releases_without_a_finite_epsilon_fit_one_batch(world: World) -> None:
    dataset, analyst = world.ready(ALL, ALL)
    requests = [request(dataset, analyst, PrivacyLoss(0, 0, 40, 1)) for _ in range(3)]

    async def together() -> list[object]:
        calls = [world.ledger.ledger.reserve(one) for one in requests]
        return await asyncio.gather(*calls, return_exceptions=True)

    outcomes = finished(together())
    assert [isinstance(one, Reservation) for one in outcomes] == [True, True, False]
    assert isinstance(outcomes[2], BudgetExhausted)
    assert charged(world, dataset, analyst) == (0, 0, 80, 2)
    check(world)


def test_a_limit_states_its_delta_and_falls_to_what_its_charges_fit(world: World) -> None:
    dataset, analyst = world.ready(BOTH, Limit(100, 0, 1000, 7))
    ask(world, dataset, analyst, 12, 0, 60)
    for lower in (Limit(10), Limit(10, 0, 59, 6)):
        with pytest.raises(BelowSpent):
            world.grant(dataset, analyst, lower)
    world.grant(dataset, analyst, Limit(10, 0, 60, 6))
    world.grant(dataset, analyst, Limit(12))
    world.grant(dataset, analyst, Limit(20, 1, 200, 9))
    entries = page_of_entries(world.database, analyst_id=analyst.id).items
    moved = [one.amounts for one in reversed(entries) if one.kind in ("genesis", "limit_change")]
    assert moved == [(10, 0, 100, 7), (0, 0, -40, -1), (2, 0, -60, -6), (8, 1, 200, 9)]
    account = world.ledger.account(dataset.id, analyst.id)
    assert account is not None
    assert account.account.limit == Limit(20, 1, 200, 9)
    check(world)


def test_limits_follow_from_the_promise() -> None:
    promised = Limit.of(loss(4), ATTO // 10**6)
    assert promised.rho_femto in range(311064954940833, 311064954940836)
    assert Limit.of(loss(4)) == Limit(4 * NANO)
    for epsilon, delta in ((1001, 1), (1, ATTO // 1000 + 1)):
        with pytest.raises(ValueError):
            Limit.of(loss(epsilon), delta)
    with pytest.raises(ValueError):
        Limit(10, 0, 100)
    for pure in (Limit, Limit.of):
        with pytest.raises(ValueError):
            pure(loss(4) if pure is not Limit else 10, gaussian=True)  # type: ignore[arg-type]


def test_what_was_not_counted_is_filled_in_with_the_first_limit_in_rho(world: World) -> None:
    """Charges under a limit beyond 1000 are not counted in ρ, as those of earlier versions."""
    dataset, analyst = world.ready(allowance(1001), allowance(1001))
    ask(world, dataset, analyst, NANO // 2, 0, 5)
    given_back = ask(world, dataset, analyst, NANO // 4, 0, 5)
    late = ask(world, dataset, analyst, NANO // 8, 0, 5)
    assert world.ledger.release(given_back)
    assert charged(world, dataset, analyst) == (NANO // 8 * 5, 0, 0, 0)
    check(world)
    both = Limit.of(loss(10), ATTO // 10**6)
    world.grant(dataset, analyst, both)
    rho = pure_femto(NANO // 2) + pure_femto(NANO // 8)
    assert charged(world, dataset, analyst) == (NANO // 8 * 5, 0, rho, 0)
    check(world)
    # A released query gives back the amounts that its charge stored, which have no ρ here. The ρ
    # that the first limit in ρ filled in for it stays charged.
    assert world.ledger.release(late)
    assert charged(world, dataset, analyst) == (NANO // 2, 0, rho, 0)
    ask(world, dataset, analyst, NANO // 8, 0, 5)
    # A second change to a limit in ρ fills in no ρ, because charges have counted in ρ since the
    # first change.
    world.grant(dataset, analyst, allowance(10))
    world.grant(dataset, analyst, both)
    assert charged(world, dataset, analyst) == (NANO // 8 * 5, 0, rho + 5, 0)
    check(world)


def test_what_was_charged_may_be_too_much_for_the_first_limit_in_rho(world: World) -> None:
    dataset, analyst = world.ready(allowance(2000), allowance(2000))
    ask(world, dataset, analyst, 5 * NANO, 0, 5)
    before = contents(world.database)
    with pytest.raises(BelowSpent):
        world.grant(dataset, analyst, Limit.of(loss(1), ATTO // 10**6))
    assert contents(world.database) == before


def test_a_charge_in_rho_is_at_most_its_epsilon(world: World) -> None:
    dataset, analyst = world.ready(BOTH)
    with pytest.raises(ValueError):
        request(dataset, analyst, PrivacyLoss(1, 0, 10**6 + 1))


def test_a_frozen_account_gets_its_first_limit_in_rho(world: World) -> None:
    """What is filled in is no new charge, so the freeze does not refuse it."""
    dataset, analyst = world.ready(allowance(2000), allowance(2000))
    ask(world, dataset, analyst, NANO, 0, 5)
    account = world.ledger.account(dataset.id, analyst.id)
    assert account is not None
    ids, at_us = [account.id], world.now()
    world.database.write(lambda connection: freeze(connection, ids, at_us))
    world.grant(dataset, analyst, Limit.of(loss(5), ATTO // 10**6))
    assert charged(world, dataset, analyst) == (NANO, 0, pure_femto(NANO), 0)
    with pytest.raises(AccountFrozen):
        ask(world, dataset, analyst, 1, 0, 1)
    assert verify(world.database).first_bad is None


def test_an_account_over_all_datasets_has_no_limit_in_rho(world: World) -> None:
    analyst = world.analyst()
    with pytest.raises(ValueError):
        world.ledger.grant(None, analyst.id, BOTH, actor_id=world.admin.id)
    assert world.ledger.account(None, analyst.id) is None


def never_filled(_connection: object, _account: int) -> int:
    return 0


def test_verification_finds_a_limit_in_rho_beside_charges_without_rho(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset, analyst = world.ready(allowance(2000), allowance(2000))
    ask(world, dataset, analyst, NANO, 0, 5)
    monkeypatch.setattr(limits, "rho_to_fill", never_filled)
    world.grant(dataset, analyst, Limit.of(loss(5), ATTO // 10**6))
    bad = verify(world.database).first_bad
    assert bad is not None
    assert "not counted in ρ" in bad.reason


@pytest.mark.parametrize("opening", [True, False])
def test_verification_finds_a_limit_in_rho_beyond_its_promise(world: World, opening: bool) -> None:
    promised = Limit.of(loss(5), ATTO // 10**6)
    dataset, analyst = world.ready(promised)
    beyond = replace(promised, rho_femto=promised.rho_femto + 1)
    assert verify(world.database).first_bad is None
    if opening:
        analyst = world.analyst()
    world.grant(dataset, analyst, beyond)
    bad = verify(world.database).first_bad
    assert bad is not None
    assert bad.reason == verify_chains.BEYOND


@pytest.mark.parametrize("ended", [True, False])
def test_verification_believes_no_operator_who_raises_a_limit_in_rho(
    world: World, ended: bool
) -> None:
    """Only an account that takes no charge any longer may have such a limit after a freeze."""
    limit = Limit.of(loss(5), ATTO // 10**6)
    dataset, analyst = world.ready(limit)
    account = world.ledger.account(dataset.id, analyst.id)
    assert account is not None
    at_us = world.now()
    causes = [
        Cause(EntryKind.FREEZE, 0, at_us),
        Cause(EntryKind.LIMIT_CHANGE, 0, at_us, Limit(0, 0, 10**6, 1).amounts),
        Cause(EntryKind.UNFREEZE, 0, at_us),
    ][: 3 if ended else 2]
    id = account.id
    world.database.write(lambda connection: [change_account(connection, id, one) for one in causes])
    bad = verify(world.database).first_bad
    assert bad is not None
    assert bad.reason == verify_chains.BEYOND
