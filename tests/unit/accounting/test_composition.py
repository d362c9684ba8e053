"""Steps add up: sequential ones in full, parallel ones once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting.account import Account
from accounting.composition import Step, repeated, total
from accounting.errors import BelowSpent, BudgetExhausted, CapExhausted
from accounting.privacy_loss import PrivacyLoss

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
        "times": 10,
        "composition": "sequential",
    }


@given(limit=losses, charge=losses)
def test_an_account_admits_what_fits(limit: PrivacyLoss, charge: PrivacyLoss) -> None:
    account = Account(limit, PrivacyLoss(0))
    assert account.admits(charge) == charge.fits(limit)
    assert account.remaining == limit


def test_an_account_beyond_its_limit_cannot_be_made() -> None:
    with pytest.raises(ValueError):
        Account(PrivacyLoss(1), PrivacyLoss(2))


def test_refusals_carry_facts() -> None:
    one, two = PrivacyLoss(1), PrivacyLoss(2)
    refusal = BudgetExhausted(charge=two, remaining=one)
    assert (refusal.charge, refusal.remaining) == (two, one)
    assert CapExhausted(charge=two).charge == two
    assert BelowSpent(spent=one).spent == one
