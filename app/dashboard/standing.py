"""How an account stands, in a person's terms: what is left, for how long, for how many answers.

Predictions of habits, for people: they decide nothing and are made of what the history of the
account serves to everybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from accounting.privacy_loss import NANO, PrivacyLoss, format_units
from app.contract.amounts import MIN_QUERY_EPSILON_NANO
from app.routes.budgets import Standing
from app.routes.history import Point

#: ε of an answer for who has no habits yet.
FIRST_EPSILON_NANO = NANO // 10
#: A projection looks back this far, so that last year's habits do not speak for this week.
HABIT_DAYS = 30
#: A projection further ahead than this says nothing.
HORIZON_DAYS = 3650


@dataclass(frozen=True)
class State:
    """What to know of an account at a glance; ``tone`` is "good", "warn" or "bad"."""

    name: str
    tone: str


def share_left(standing: Standing) -> int:
    """What remains of the allowance in percent, rounded down; 0 of nothing."""
    limit = standing.allowance.epsilon_nano
    return 0 if limit == 0 else standing.remaining.epsilon_nano * 100 // limit


def state_of(standing: Standing) -> State:
    if standing.remaining.epsilon_nano < MIN_QUERY_EPSILON_NANO:
        return State("exhausted", "bad")
    if share_left(standing) < 15:
        return State("nearly spent", "warn")
    return State("open", "good")


@dataclass(frozen=True)
class Habit:
    """ε of a usual answer, and how many more of them the remaining allowance pays for."""

    epsilon: str
    answers: int
    #: Whether it is the mean of what was asked, rather than a place to begin.
    known: bool


def habit(points: Sequence[Point], remaining: PrivacyLoss) -> Habit:
    """The mean charge of the queries in ``points``, at four significant digits."""
    queries = sum(point.queries for point in points)
    charged = sum(point.charged.epsilon_nano for point in points)
    known = queries > 0 and charged > 0
    usual = _rounded(charged // queries) if known else FIRST_EPSILON_NANO
    return Habit(format_units(usual, 9), remaining.epsilon_nano // usual, known)


def _rounded(nano: int) -> int:
    """Four significant digits, down; never to nothing."""
    step: int = 10 ** max(0, len(str(nano)) - 4)
    return max(nano // step * step, 1)


@dataclass(frozen=True)
class Day:
    """What was left at the end of a day on which something was charged."""

    day: date
    queries: int
    charged: PrivacyLoss
    remaining: PrivacyLoss


def burn_down(points: Sequence[Point], allowance: PrivacyLoss) -> list[Day]:
    """The allowance as it is now, less everything charged up to each day; oldest first.

    ``points`` are those of the history by day. What was charged beyond an allowance that was
    lowered since cannot be: a limit is never set below what is spent.
    """
    days = []
    left = allowance
    for point in sorted(points, key=lambda point: point.label):
        left = left - point.charged
        days.append(Day(date.fromisoformat(point.label), point.queries, point.charged, left))
    return days


def exhaustion(days: Sequence[Day], today: date) -> date | None:
    """The day on which ε runs out at the pace of the last 30 days; None without a pace."""
    recent = [day for day in days if (today - day.day).days < HABIT_DAYS]
    charged = sum(day.charged.epsilon_nano for day in recent)
    if not recent or charged == 0:
        return None
    elapsed = (today - recent[0].day).days + 1
    left = days[-1].remaining.epsilon_nano
    ahead = -(-left * elapsed // charged)
    return today + timedelta(days=ahead) if ahead <= HORIZON_DAYS else None
