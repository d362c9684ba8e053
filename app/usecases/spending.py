"""How an account was spent, and for how long and for how many answers it will last.

Predictions from habits, for people: they decide nothing, and use only what the history of the
account serves.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from accounting.privacy_loss import NANO, PrivacyLoss, format_units
from app.contract.budgets import AccountBalance, AnalystAccount, Point
from app.contract.times import moment
from app.identity.callers import Caller
from app.usecases import budgets
from app.usecases.services import Services

#: Default ε shown to an analyst who has not asked a query yet.
FIRST_EPSILON_NANO = NANO // 10
#: A projection looks back this far, so that last year's habits do not speak for this week.
HABIT_DAYS = 30
#: A projection further ahead than this says nothing.
HORIZON_DAYS = 3650


@dataclass(frozen=True)
class Habit:
    """ε of a usual answer, and how many more of them the remaining allowance pays for.

    ``measured`` is False while it is a place to begin rather than the mean of past charges.
    """

    epsilon: str
    answers: int
    measured: bool


def habit(points: Sequence[Point], remaining: PrivacyLoss) -> Habit:
    """The mean charge of the queries in ``points``, at four significant digits."""
    queries = sum(point.queries for point in points)
    charged = sum(point.charged.epsilon_nano for point in points)
    measured = queries > 0 and charged > 0
    usual = _rounded(charged // queries) if measured else FIRST_EPSILON_NANO
    return Habit(format_units(usual, 9), remaining.epsilon_nano // usual, measured)


def _rounded(nano: int) -> int:
    """At four significant digits, rounded down, at least 1."""
    step: int = 10 ** max(0, len(str(nano)) - 4)
    return max(nano // step * step, 1)


@dataclass(frozen=True)
class Day:
    """A day with charges, and what remained at its end."""

    day: date
    queries: int
    charged: PrivacyLoss
    remaining: PrivacyLoss


def burn_down(points: Sequence[Point], allowance: PrivacyLoss) -> list[Day]:
    """The allowance as it is now, less everything charged up to each day; oldest first.

    ``points`` are those of the history by day. They never exceed the allowance, because a limit is
    never set below what is spent.
    """
    days = []
    remaining = allowance
    for point in sorted(points, key=lambda point: point.label):
        remaining = remaining - point.charged
        days.append(Day(date.fromisoformat(point.label), point.queries, point.charged, remaining))
    return days


def exhaustion(days: Sequence[Day], today: date) -> date | None:
    """The day on which ε runs out at the pace of the last 30 days; None without a pace."""
    recent = [day for day in days if (today - day.day).days < HABIT_DAYS]
    charged = sum(day.charged.epsilon_nano for day in recent)
    if not recent or charged == 0:
        return None
    elapsed = (today - recent[0].day).days + 1
    ahead = -(-days[-1].remaining.epsilon_nano * elapsed // charged)
    return today + timedelta(days=ahead) if ahead <= HORIZON_DAYS else None


def percent(part: PrivacyLoss, whole: PrivacyLoss) -> int:
    """ε of ``part`` in percent of that of ``whole``, rounded down; 0 of nothing."""
    return part.epsilon_nano * 100 // whole.epsilon_nano if whole.epsilon_nano else 0


@dataclass(frozen=True)
class AccountSpending:
    """One account: ``share`` of its allowance remains, in percent, for answers by ``habit``."""

    account: AnalystAccount
    share: int
    habit: Habit


@dataclass(frozen=True)
class OwnSpending:
    """The caller's accounts, and the limit over all of them if there is one."""

    accounts: list[AccountSpending]
    overall: AccountBalance | None


@dataclass(frozen=True)
class AccountHistory:
    """How one account was spent, and the day on which it is projected to be exhausted."""

    spending: AccountSpending
    days: list[Day]
    by_mechanism: list[Point]
    today: date
    projected: date | None


def accounts(services: Services, caller: Caller) -> OwnSpending:
    """The caller's accounts, and how usual queries use them."""
    own = budgets.own(services, caller)
    return OwnSpending([_spending(services, caller, one) for one in own.items], own.overall)


def account_history(services: Services, caller: Caller, dataset: str) -> AccountHistory:
    """How the caller's account for one dataset was spent. Raises: NotFound."""
    account = budgets.own_account(services, caller, dataset)
    by_day = budgets.history(services, caller, dataset, by="day").items
    days = burn_down(by_day, account.allowance)
    today = moment(services.database.now_us()).date()
    return AccountHistory(
        spending=_spending(services, caller, account),
        days=days,
        by_mechanism=budgets.history(services, caller, dataset, by="mechanism").items,
        today=today,
        projected=exhaustion(days, today),
    )


def _spending(services: Services, caller: Caller, account: AnalystAccount) -> AccountSpending:
    points = budgets.history(services, caller, account.dataset, by="kind").items
    return AccountSpending(
        account, percent(account.remaining, account.allowance), habit(points, account.remaining)
    )
