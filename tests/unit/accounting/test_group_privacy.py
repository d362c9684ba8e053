"""Shares of a group keep its bound, checked by rational arithmetic independent of the code."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting.group_privacy import geometric_sum, group_loss, member_loss
from accounting.privacy_loss import ATTO, MAX_DELTA_ATTO, NANO, PrivacyLoss


def exp_bounds(x: Fraction) -> tuple[Fraction, Fraction]:
    """Rationals below and above e^x, x ≥ 0, closer than a part in 10²⁵: Taylor's series of x/m.

    For 0 ≤ y ≤ 1/2: Σ_{i<n} yⁱ/i! ≤ e^y ≤ that + 2 yⁿ/n!. Squaring keeps the direction.
    """
    halvings = 0
    while x > Fraction(1, 2):
        x, halvings = x / 2, halvings + 1
    term, low = Fraction(1), Fraction(0)
    for i in range(1, 45):
        low, term = low + term, term * x / i
    high = low + 2 * term
    for _ in range(halvings):
        low, high = _down(low * low), _up(high * high)
    return low, high


def _down(value: Fraction) -> Fraction:
    return Fraction(value.numerator * 2**200 // value.denominator, 2**200)


def _up(value: Fraction) -> Fraction:
    return Fraction(-(-value.numerator * 2**200 // value.denominator), 2**200)


def sum_bounds(epsilon_nano: int, members: int) -> tuple[Fraction, Fraction]:
    """The sum of the powers, term by term."""
    low, high = exp_bounds(Fraction(epsilon_nano, NANO))
    sums, powers = [Fraction(0), Fraction(0)], [Fraction(1), Fraction(1)]
    for _ in range(members):
        sums = [sums[0] + powers[0], sums[1] + powers[1]]
        powers = [_down(powers[0] * low), _up(powers[1] * high)]
    return sums[0], sums[1]


members = st.integers(1, 40)
groups = st.builds(
    PrivacyLoss,
    st.integers(0, 20 * NANO),
    st.integers(0, MAX_DELTA_ATTO) | st.integers(0, 10**6),
)


@given(group=groups, members=members)
def test_a_group_loses_no_more_than_it_was_granted(group: PrivacyLoss, members: int) -> None:
    one = member_loss(group, members)
    low, high = sum_bounds(one.epsilon_nano, members)
    assert one.epsilon_nano * members <= group.epsilon_nano
    assert one.delta_atto * high <= group.delta_atto
    # One unit more of ε or of δ for each member would exceed the loss of the group.
    assert (one.epsilon_nano + 1) * members > group.epsilon_nano
    assert (one.delta_atto + 1) * low > group.delta_atto


@given(one=st.builds(PrivacyLoss, st.integers(0, NANO), st.integers(0, 10**9)), members=members)
def test_what_a_group_loses_is_rounded_up_by_less_than_a_unit(
    one: PrivacyLoss, members: int
) -> None:
    group = group_loss(one, members)
    low, high = sum_bounds(one.epsilon_nano, members)
    assert group.epsilon_nano == one.epsilon_nano * members
    assert one.delta_atto * low <= group.delta_atto
    assert group.delta_atto < one.delta_atto * high + 1


@given(one=st.builds(PrivacyLoss, st.integers(1, NANO), st.integers(0, 10**9)), members=members)
def test_the_least_charge_reaches_the_loss_it_was_asked_for(one: PrivacyLoss, members: int) -> None:
    assert one.fits(member_loss(group_loss(one, members), members))


@given(members=st.integers(1, 10**6))
def test_without_epsilon_the_terms_are_ones(members: int) -> None:
    assert geometric_sum(0, members) == members


def test_a_replacement_is_two_changes() -> None:
    """δ / (1 + e^(ε/2)): at ε = 2 ln 3, δ falls to a quarter."""
    # This ε is 2·ln 3 in units of 10⁻⁹, rounded down.
    epsilon = 2 * 1_098_612_288
    half = member_loss(PrivacyLoss(epsilon, 4 * 10**12), 2)
    assert half.epsilon_nano == 1_098_612_288
    assert 10**12 <= half.delta_atto <= 10**12 + 10**3


def test_a_million_members_and_a_huge_loss_leave_no_delta() -> None:
    one = member_loss(PrivacyLoss(10**6 * NANO, ATTO - 1), 10**6)
    assert one == PrivacyLoss(NANO, 0)
    assert geometric_sum(10**6 * NANO, 2) > 10**400_000


@pytest.mark.parametrize("members", [0, -1])
def test_a_group_has_members(members: int) -> None:
    for rule in (member_loss, group_loss):
        with pytest.raises(ValueError):
            rule(PrivacyLoss(1, 1), members)
