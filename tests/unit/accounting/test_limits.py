"""Limits of accounts: what they may be, and how they are written."""

from __future__ import annotations

import pytest

from accounting.account import Account, Limit, fits_more
from accounting.conversion import holds
from accounting.errors import BelowSpent
from accounting.privacy_loss import PrivacyLoss


@pytest.mark.parametrize(
    "amounts",
    [(-1,), (1, -1), (1, 0, -1, 1), (10**9, 0, 1, 0), (1001 * 10**9, 0, 1, 1), (1, 0, 0, 0, True)],
)
def test_a_limit_in_rho_follows_from_a_delta_and_a_bounded_epsilon(
    amounts: tuple[int, ...],
) -> None:
    with pytest.raises(ValueError, match="limit"):
        Limit(*amounts)


def test_a_limit_names_rho_only_where_it_has_one() -> None:
    loss = PrivacyLoss.parse("1", "0.5")
    assert Limit.of(loss).as_dict() == {"epsilon": "1", "delta": "0.5"}
    both = Limit.of(loss, 10**12).as_dict()
    assert both["composition_delta"] == "0.000001"
    assert 0 < float(both["rho"]) < 0.1
    assert Limit.of(loss, 10**12).loss == loss


def test_no_account_is_charged_beyond_its_limit() -> None:
    limit = Limit.of(PrivacyLoss.parse("1"))
    Account(limit, PrivacyLoss.parse("1"))
    with pytest.raises(ValueError, match="beyond its limit"):
        Account(limit, PrivacyLoss.parse("1.000000001"))


def test_a_charge_without_a_finite_epsilon_fits_only_where_it_is_allowed() -> None:
    charge, nothing = (0, 0, 10**10, 1), (0, 0, 0, 0)
    for allowed in (False, True):
        limit = Limit.of(PrivacyLoss.parse("1"), 10**12, gaussian=allowed)
        times = limit.rho_femto // charge[2] if allowed else 0
        assert fits_more(limit.amounts, nothing, charge) == times


def test_a_limit_in_rho_holds_up_to_what_follows_from_its_promise() -> None:
    most = Limit.of(PrivacyLoss.parse("1"), 10**12).rho_femto
    assert holds(10**9, 10**12, most)
    assert not holds(10**9, 10**12, most + 1)
    assert holds(10**9, 0, 0)
    assert not holds(10**9, 0, 1)
    assert not holds(1001 * 10**9, 10**12, 1)


def test_a_refused_limit_names_the_delta_that_it_would_lose() -> None:
    spent = PrivacyLoss.parse("1")
    assert "composition_delta 0.000001 of the account" in str(
        BelowSpent(spent=spent, lost_atto=10**12)
    )
    assert "composition_delta" not in str(BelowSpent(spent=spent))
