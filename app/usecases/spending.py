"""The past charges of an account, and a projection of how long its allowance will last.

Projections follow from past charges, which the analyst may read anyway. They are shown to people
and decide nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from accounting.account import fits_more, remaining
from accounting.privacy_loss import NANO, PrivacyLoss, format_units
from accounting.rho import pure_femto
from app.contract.budgets import AccountBalance, AnalystAccount, Point
from app.contract.times import moment
from app.identity.callers import Caller
from app.usecases import budgets
from app.usecases.services import Services

NOTHING = (0, 0, 0, 0)
#: The ε (in nano-epsilons) that is shown to an analyst who has not sent a query yet.
FIRST_EPSILON_NANO = NANO // 10
#: A projection uses only the charges of this many days, because habits change.
HABIT_DAYS = 30
#: A projection beyond this many days is too uncertain to show.
HORIZON_DAYS = 3650


@dataclass(frozen=True)
class Habit:
    """The ε of a usual answer, and the number of such answers that the remaining budget pays for.

    ``measured``: True if ε is the mean of past charges, False if it is the default for beginners.
    """

    epsilon: str
    answers: int
    measured: bool


def habit(points: Sequence[Point], rest: PrivacyLoss) -> Habit:
    """The habit by the mean charge of the queries in ``points``, at four significant digits."""
    queries = sum(point.queries for point in points)
    charged = sum(point.charged.epsilon_nano for point in points)
    measured = queries > 0 and charged > 0
    usual = _rounded(charged // queries) if measured else FIRST_EPSILON_NANO
    # Some answer of that ε: its ρ is at most that of any ε-DP query.
    answer = (usual, 0, pure_femto(usual), 0)
    answers = fits_more((*rest.amounts, 0), NOTHING, answer) or 0
    return Habit(format_units(usual, 9), answers, measured)


def _rounded(nano: int) -> int:
    """``nano`` rounded down to four significant digits; at least 1."""
    step: int = 10 ** max(0, len(str(nano)) - 4)
    return max(nano // step * step, 1)


@dataclass(frozen=True)
class Day:
    """One day with charges: their number, their sum, and the budget at the end of the day."""

    day: date
    queries: int
    charged: PrivacyLoss
    remaining: PrivacyLoss


def burn_down(points: Sequence[Point], allowance: PrivacyLoss) -> list[Day]:
    """The days in ``points``, oldest first, with the budget that remained after each.

    ``points``: the history by day. ``allowance``: the allowance of today. Charges exceed its ε only
    in an account that counts in ρ; nothing of ε remains then.
    """
    days = []
    limit, charged = (*allowance.amounts[:2], 0, 0, 0), PrivacyLoss(0)
    for point in sorted(points, key=lambda point: point.label):
        charged += point.charged
        rest = remaining(limit, charged.amounts)
        days.append(Day(date.fromisoformat(point.label), point.queries, point.charged, rest))
    return days


def exhaustion(days: Sequence[Day], today: date) -> date | None:
    """The day on which ε runs out at the pace of the last ``HABIT_DAYS`` days; None if unknown."""
    recent = [day for day in days if (today - day.day).days < HABIT_DAYS]
    charged = sum(day.charged.epsilon_nano for day in recent)
    if not recent or charged == 0:
        return None
    elapsed = (today - recent[0].day).days + 1
    ahead = -(-days[-1].remaining.epsilon_nano * elapsed // charged)
    return today + timedelta(days=ahead) if ahead <= HORIZON_DAYS else None


def percent(part: PrivacyLoss, whole: PrivacyLoss) -> int:
    """ε of ``part`` in percent of ε of ``whole``, rounded down; 0 if ``whole`` has no ε."""
    return part.epsilon_nano * 100 // whole.epsilon_nano if whole.epsilon_nano else 0


@dataclass(frozen=True)
class AccountSpending:
    """One account, the ``share`` of its allowance that remains (percent), and the usual answer."""

    account: AnalystAccount
    share: int
    habit: Habit


@dataclass(frozen=True)
class OwnSpending:
    """The caller's accounts, and the limits over all of them and of the key if there are any."""

    accounts: list[AccountSpending]
    overall: AccountBalance | None
    key: AccountBalance | None


@dataclass(frozen=True)
class AccountHistory:
    """The charges of one account by day and mechanism, and the day of projected exhaustion."""

    spending: AccountSpending
    days: list[Day]
    by_mechanism: list[Point]
    today: date
    projected: date | None


def accounts(services: Services, caller: Caller) -> OwnSpending:
    """The caller's accounts with the remaining share and the usual answer of each."""
    own = budgets.own(services, caller)
    spent = [_spending(services, caller, one) for one in own.items]
    return OwnSpending(spent, own.overall, own.key)


def account_history(services: Services, caller: Caller, dataset: str) -> AccountHistory:
    """The charges of the caller's account for one dataset. Raises: NotFound."""
    account = budgets.own_account(services, caller, dataset)
    by_day = budgets.history(services, caller, dataset, by="day").items
    days = burn_down(by_day, account.allowance.loss)
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
    share = percent(account.remaining, account.allowance.loss)
    return AccountSpending(account, share, habit(points, account.remaining))
