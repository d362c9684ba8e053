"""The display of an account: shares, remaining answers, and when it will be exhausted."""

from __future__ import annotations

import re
from datetime import date, timedelta
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting.account import Account, Limit
from accounting.privacy_loss import NANO, PrivacyLoss
from app.contract.budgets import AccountBalance, Point
from app.dashboard.burn_down import burn_down_chart
from app.dashboard.views.budgets import state_of
from app.usecases.spending import burn_down, exhaustion, habit, percent

TODAY = date(2026, 3, 10)


def standing(allowance: str, spent: str) -> AccountBalance:
    limit, charged = PrivacyLoss.parse(allowance), PrivacyLoss.parse(spent)
    return AccountBalance.model_validate(SimpleNamespace(account=Account(Limit.of(limit), charged)))


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
    account = standing(allowance, spent)
    assert (percent(account.remaining, account.allowance.loss), state_of(account).name) == (
        share,
        state,
    )


def test_a_habit_is_the_mean_charge_and_never_promises_too_many() -> None:
    typical = habit([point("top_k", 3, "1"), point("tree", 1, "1")], PrivacyLoss.parse("1.9"))
    assert (typical.epsilon, typical.answers, typical.measured) == ("0.5", 3, True)
    first = habit([], PrivacyLoss.parse("1"))
    assert (first.epsilon, first.answers, first.measured) == ("0.1", 10, False)


@given(
    st.integers(1, 10**6),
    st.integers(1000, 10**15),
    st.integers(0, 10**15),
)
def test_a_habit_fits_what_remains(queries: int, charged: int, remaining: int) -> None:
    points = [Point(label="x", queries=queries, charged=PrivacyLoss(charged))]
    typical = habit(points, PrivacyLoss(remaining))
    usual = PrivacyLoss.parse(typical.epsilon).epsilon_nano
    assert usual >= 1
    assert usual * typical.answers <= remaining
    if charged // queries:
        assert charged // queries * 999 // 1000 <= usual <= max(charged // queries, 1)


def test_days_go_down_from_the_allowance() -> None:
    points = [point("2026-03-09", 1, "0.25"), point("2026-03-01", 2, "0.5")]
    days = burn_down(points, PrivacyLoss.parse("2"))
    assert [(d.day.day, d.remaining.as_dict()["epsilon"]) for d in days] == [
        (1, "1.5"),
        (9, "1.25"),
    ]


def test_the_projected_day() -> None:
    days = burn_down([point("2026-03-01", 2, "1")], PrivacyLoss.parse("2"))
    # One ε was spent in ten days, today included: another one lasts ten more.
    assert exhaustion(days, TODAY) == TODAY + timedelta(days=10)
    assert exhaustion(days, TODAY + timedelta(days=60)) is None
    assert exhaustion([], TODAY) is None
    spent = burn_down([point("2026-03-01", 2, "2")], PrivacyLoss.parse("2"))
    assert exhaustion(spent, TODAY) == TODAY


@given(
    st.lists(st.tuples(st.integers(0, 900), st.integers(0, NANO)), min_size=1, max_size=8),
    st.integers(0, 5 * NANO),
)
def test_the_drawing_stays_inside_its_frame(charges: list[tuple[int, int]], spare: int) -> None:
    by_day = {TODAY - timedelta(days=ago): charged for ago, charged in charges}
    points = [
        Point(label=day.isoformat(), queries=1, charged=PrivacyLoss(charged))
        for day, charged in by_day.items()
    ]
    allowance = PrivacyLoss(sum(by_day.values()) + spare + 1)
    days = burn_down(points, allowance)
    drawn = burn_down_chart(days, allowance.epsilon_nano, TODAY, exhaustion(days, TODAY))

    numbers = [float(n) for n in re.findall(r'(?<=[ MHVL"])-?\d+(?:\.\d+)?(?=[ "HVL])', drawn)]
    assert numbers
    assert all(-0.1 <= number <= 560.1 for number in numbers)
    assert "style=" not in drawn
