"""The display of an account: shares, remaining answers, and when nothing will be left."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting.account import Account, Limit
from accounting.privacy_loss import NANO, PrivacyLoss
from accounting.rho import FEMTO
from app.contract.budgets import AccountBalance, Point
from app.dashboard.burn_down import TICKS, burn_down_chart, ticks
from app.dashboard.views.budgets import state_of
from app.usecases.accounts.arms import EPSILON, RHO, arm_of, share_left
from app.usecases.accounts.spending import BurnDown, burn_down, exhaustion, habit

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)


def account(limit: Limit, charged: PrivacyLoss) -> AccountBalance:
    one = Account(limit, charged)
    row = SimpleNamespace(
        account=one,
        remaining=one.remaining,
        largest_epsilon=one.largest_epsilon,
        until_us=None,
        is_over=False,
    )
    return AccountBalance.model_validate(row)


def standing(allowance: str, spent: str) -> AccountBalance:
    return account(Limit.of(PrivacyLoss.parse(allowance)), PrivacyLoss.parse(spent))


def point(label: str, queries: int, charged: str) -> Point:
    return Point(label=label, queries=queries, charged=PrivacyLoss.parse(charged))


@pytest.mark.parametrize(
    ("allowance", "spent", "share", "state"),
    [
        ("2", "0", 100, "open"),
        ("2", "1.7", 15, "open"),
        ("2", "1.701", 14, "nearly spent"),
        ("2", "1.999999", 0, "nearly spent"),
        ("2", "1.9999991", 0, "exhausted"),
        ("0", "0", 0, "exhausted"),
    ],
)
def test_state_and_share(allowance: str, spent: str, share: int, state: str) -> None:
    one = standing(allowance, spent)
    assert (share_left(one), state_of(one).name) == (share, state)


def test_a_habit_is_the_mean_charge_and_never_promises_too_many() -> None:
    rest = standing("2", "0.1")
    typical = habit([point("top_k", 3, "1"), point("tree", 1, "1")], rest)
    assert (typical.charge, typical.answers, typical.measured) == ("ε 0.5", 3, True)
    first = habit([], standing("1", "0"))
    assert (first.charge, first.answers, first.measured) == ("ε 0.1", 10, False)


@given(
    st.integers(1, 10**6),
    st.integers(1000, 10**15),
    st.integers(0, 10**15),
)
def test_a_habit_fits_what_remains(queries: int, charged: int, remaining: int) -> None:
    points = [Point(label="x", queries=queries, charged=PrivacyLoss(charged))]
    typical = habit(points, account(Limit(remaining), PrivacyLoss(0)))
    usual = PrivacyLoss.parse(typical.charge.removeprefix("ε ")).epsilon_nano
    assert usual >= 1
    assert usual * typical.answers <= remaining
    if charged // queries:
        assert charged // queries * 999 // 1000 <= usual <= max(charged // queries, 1)


def test_after_charges_without_a_finite_epsilon_all_is_told_in_rho() -> None:
    limit = Limit.of(PrivacyLoss.parse("5"), 10**12, gaussian=True)
    charge = PrivacyLoss(0, 0, FEMTO // 100, 1)
    one = account(limit, charge * 2)
    assert arm_of(one) is RHO
    assert EPSILON.share(one) == 0
    points = [Point(label="2026-03-09", queries=2, charged=charge * 2)]
    typical = habit(points, one)
    assert typical.charge == "ρ 0.01"
    assert typical.answers == (limit.rho_femto - 2 * charge.rho_femto) // charge.rho_femto
    days = burn_down(points, one)
    assert days[-1].rest == limit.rho_femto - 2 * charge.rho_femto
    projected = exhaustion(days, RHO, NOW)
    assert projected is not None
    assert projected.charged == 2 * charge.rho_femto
    drawn = burn_down_chart(BurnDown(one, days, NOW, projected))
    assert drawn is not None
    assert "left of the limit (ρ)" in drawn


def test_days_go_down_from_the_allowance() -> None:
    points = [point("2026-03-09", 1, "0.25"), point("2026-03-01", 2, "0.5")]
    days = burn_down(points, standing("2", "0.75"))
    assert [(one.at.day, one.rest) for one in days] == [(1, 1_500_000_000), (9, 1_250_000_000)]


def test_the_projected_moment() -> None:
    one = standing("2", "1")
    days = burn_down([point("2026-03-01", 2, "1")], one)
    # Half of the allowance of ε = 2 was spent in 9.5 days, so the rest should last 9.5 days more.
    projected = exhaustion(days, EPSILON, NOW)
    assert projected is not None
    assert projected.at == NOW + timedelta(days=9.5)
    assert exhaustion(days, EPSILON, NOW + timedelta(days=60)) is None
    assert exhaustion([], EPSILON, NOW) is None
    spent = burn_down([point("2026-03-01", 2, "2")], standing("2", "2"))
    projected = exhaustion(spent, EPSILON, NOW)
    assert projected is not None
    assert projected.at == NOW


def test_the_first_minutes_show_no_pace_of_years() -> None:
    one = standing("2", "0.5")
    hours = burn_down([point("2026-03-10T12", 1, "0.5")], one)
    projected = exhaustion(hours, EPSILON, NOW + timedelta(minutes=1))
    assert projected is not None
    assert projected.seconds == 3600


@given(st.integers(0, 10**9), st.integers(1800, 10**9))
def test_ticks_are_few_and_lie_between(first: int, seconds: int) -> None:
    start = datetime.fromtimestamp(first, UTC)
    end = start + timedelta(seconds=seconds)
    at = list(ticks(start, end))
    assert len(at) <= TICKS + 1
    assert all(start <= one <= end for one in at)


@given(
    st.lists(st.tuples(st.integers(0, 900), st.integers(0, NANO)), min_size=1, max_size=8),
    st.integers(0, 5 * NANO),
)
def test_the_drawing_stays_inside_its_frame(charges: list[tuple[int, int]], spare: int) -> None:
    by_hour = {NOW - timedelta(hours=ago): charged for ago, charged in charges}
    points = [
        Point(label=at.isoformat()[:13], queries=1, charged=PrivacyLoss(charged))
        for at, charged in by_hour.items()
    ]
    whole = sum(by_hour.values())
    one = account(Limit(whole + spare + 1), PrivacyLoss(whole))
    hours = burn_down(points, one)
    drawn = burn_down_chart(BurnDown(one, hours, NOW, exhaustion(hours, EPSILON, NOW)))
    assert drawn is not None

    numbers = [float(n) for n in re.findall(r'(?<=[ MHVL"])-?\d+(?:\.\d+)?(?=[ "HVL])', drawn)]
    assert numbers
    assert all(-0.1 <= number <= 560.1 for number in numbers)
    assert "style=" not in drawn
