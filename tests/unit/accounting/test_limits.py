"""Limits of accounts: what they may be, and how they are written."""

from __future__ import annotations

import pytest

from accounting.account import Limit
from accounting.privacy_loss import PrivacyLoss


@pytest.mark.parametrize(
    "amounts",
    [(-1,), (1, -1), (1, 0, -1, 1), (10**9, 0, 1, 0), (1001 * 10**9, 0, 1, 1)],
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
