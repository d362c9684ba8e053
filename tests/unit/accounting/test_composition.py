"""Steps add up: sequential ones in full, parallel ones once."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting.account import Account, Limit, fits_more
from accounting.composition import Step, repeated, total
from accounting.errors import BelowSpent, BudgetExhausted, CapExhausted
from accounting.privacy_loss import ATTO, NANO, PrivacyLoss
from accounting.rho import FEMTO, pure_femto

losses = st.builds(PrivacyLoss, st.integers(0, 10**15), st.integers(0, 10**17))


@given(loss=losses, times=st.integers(1, 500))
def test_repeated_releases_cost_exactly_the_loss(loss: PrivacyLoss, times: int) -> None:
    steps = repeated("draw", loss, times)
    assert total(steps) == loss
    assert sum(step.times for step in steps) == times


@given(loss=losses, times=st.integers(1, 50))
def test_parallel_releases_cost_one(loss: PrivacyLoss, times: int) -> None:
    assert total([Step("count", loss, times, "parallel")]) == loss
    assert total([Step("count", loss, times), Step("count", loss)]) == loss * (times + 1)


def test_a_step_happens_at_least_once() -> None:
    with pytest.raises(ValueError):
        Step("draw", PrivacyLoss(1), 0)


def test_a_step_is_shown_with_decimal_amounts() -> None:
    assert Step("draw", PrivacyLoss.parse("0.05"), 10).as_dict() == {
        "what": "draw",
        "epsilon": "0.05",
        "delta": "0",
        "rho": "0.001249739648422",
        "times": 10,
        "composition": "sequential",
    }


@given(limit=losses, charge=losses)
def test_an_account_admits_what_fits(limit: PrivacyLoss, charge: PrivacyLoss) -> None:
    account = Account(Limit.of(limit), PrivacyLoss(0))
    assert account.admits(charge) == charge.fits(limit)
    assert account.remaining == limit
    assert account.largest_epsilon == limit.epsilon_nano


def test_what_still_fits_is_the_larger_of_both_ways() -> None:
    """E = 4, δ_c = 10⁻⁶; ε = 5 and ρ = 0.1 are spent."""
    limit = Limit.of(PrivacyLoss.parse(4, "0.5"), ATTO // 10**6)
    small = PrivacyLoss(50_000_000, 0, pure_femto(50_000_000))
    assert fits_more(limit.amounts, (0, 0, 0, 0), small.amounts) == 248
    spent = PrivacyLoss(5 * NANO, 0, FEMTO // 10)
    account = Account(limit, spent)
    assert account.largest_epsilon == 661366293
    assert account.remaining == PrivacyLoss(0, ATTO // 2, limit.rho_femto - FEMTO // 10)
    large = PrivacyLoss(NANO, 0, pure_femto(NANO))
    assert fits_more(limit.amounts, (0, 0, 0, 0), large.amounts) == 4
    assert fits_more(limit.amounts, spent.amounts, large.amounts) == 0
    by_delta = PrivacyLoss(1, ATTO // 10, 1)
    assert fits_more(limit.amounts, (0, 0, 0, 0), by_delta.amounts) == 5
    assert fits_more(limit.amounts, (0, 0, 0, 0), (0, 0, 1, 1)) == 0
    allowed = replace(limit, gaussian=True)
    assert fits_more(allowed.amounts, (0, 0, 0, 0), (0, 0, 10**14, 1)) == 3
    assert fits_more((NANO, 0, 0, 0, 1), (0, 0, 0, 0), (0, 0, 1, 1)) == 0


@pytest.mark.parametrize(
    "epsilon, numbers",
    [
        ("0.1", (10, 37, 308)),
        ("0.01", (487, 3701, 30785)),
        ("0.5", (2, 6, 20)),
    ],
)
def test_how_many_tables_of_counts_fit(epsilon: str, numbers: tuple[int, ...]) -> None:
    """Any ε-DP query, E = 1, 3, 10 and δ_c = 10⁻⁶: the better of both ways."""
    nano = PrivacyLoss.parse(epsilon).epsilon_nano
    charge = (nano, 0, pure_femto(nano), 0)
    for most, number in zip((1, 3, 10), numbers, strict=True):
        limit = Limit.of(PrivacyLoss(most * NANO), ATTO // 10**6)
        assert fits_more(limit.amounts, (0, 0, 0, 0), charge) == number


def test_an_account_beyond_its_limit_cannot_be_made() -> None:
    with pytest.raises(ValueError):
        Account(Limit(1), PrivacyLoss(2))


def test_refusals_carry_facts() -> None:
    one, two = PrivacyLoss(1), PrivacyLoss(2)
    refusal = BudgetExhausted(charge=two, remaining=one)
    assert (refusal.charge, refusal.remaining) == (two, one)
    assert CapExhausted(charge=two).charge == two
    assert BelowSpent(spent=one).spent == one
