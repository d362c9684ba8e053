"""Losses are exact: sums, shares and their decimal texts never lose or invent a unit."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting.privacy_loss import (
    MAX_DELTA_ATTO,
    MAX_EPSILON_NANO,
    PrivacyLoss,
    format_units,
    parse_units,
)

losses = st.builds(PrivacyLoss, st.integers(0, MAX_EPSILON_NANO), st.integers(0, MAX_DELTA_ATTO))


@given(loss=losses, parts=st.integers(1, 1000))
def test_shares_add_up_to_the_whole_exactly(loss: PrivacyLoss, parts: int) -> None:
    shares = loss.split(parts)
    assert len(shares) == parts
    assert sum(shares, PrivacyLoss(0)) == loss
    assert all(share == shares[0] for share in shares[:-1])


@given(loss=losses)
def test_amounts_come_back_from_their_texts(loss: PrivacyLoss) -> None:
    assert PrivacyLoss.parse(**loss.as_dict()) == loss


@given(units=st.integers(-(10**30), 10**30), digits=st.integers(0, 20))
def test_the_text_of_an_amount_is_its_value(units: int, digits: int) -> None:
    assert Fraction(Decimal(format_units(units, digits))) == Fraction(units, 10**digits)


@pytest.mark.parametrize(
    ("amount", "units"),
    [
        ("0.1", 10**8),
        (0.1, 10**8),
        (1, 10**9),
        ("1e-9", 1),
        ("-0.5", -5 * 10**8),
        ("0.10000000000000000", 10**8),
        (Decimal("2.50"), 25 * 10**8),
        ("0e-400", 0),
        ("1E2", 10**11),
        (1e-9, 1),
    ],
)
def test_decimal_amounts_are_read_exactly(amount: str | float | Decimal, units: int) -> None:
    assert parse_units(amount, 9) == units


@pytest.mark.parametrize(
    "amount",
    ["", "1_0", " 1", "1 ", "٣", "NaN", "Infinity", "0x1", "1e", "--1", "1" * 65, True,
     "1e-10", "0.1234567891", "1e-300", "1e300", "1e999999999999999999", float("inf"),
     float("nan"), 1e-300, 10**40, "1e-999999999999999999"],
)  # fmt: skip
def test_what_is_not_an_amount_is_refused(amount: str | float) -> None:
    with pytest.raises(ValueError):
        parse_units(amount, 9)


@given(losses, losses)
def test_fitting_needs_both_parts(a: PrivacyLoss, b: PrivacyLoss) -> None:
    assert a.fits(b) == (a.epsilon_nano <= b.epsilon_nano and a.delta_atto <= b.delta_atto)
    assert a.fits(a + b)


def test_a_budget_of_one_is_ten_queries_at_a_tenth() -> None:
    assert PrivacyLoss.parse("0.1") * 10 == PrivacyLoss.parse(1)
    assert PrivacyLoss.parse("0.1") * 9 != PrivacyLoss.parse(1)


@pytest.mark.parametrize("make", [lambda: PrivacyLoss(-1), lambda: PrivacyLoss(0, -1)])
def test_a_negative_loss_cannot_be_made(make: object) -> None:
    with pytest.raises(ValueError):
        make()  # type: ignore[operator]


def test_a_loss_is_split_into_at_least_one_part() -> None:
    with pytest.raises(ValueError):
        PrivacyLoss(5).split(0)


def test_epsilon_is_a_rational() -> None:
    assert PrivacyLoss.parse("0.3").epsilon() == Fraction(3, 10)
