"""The past charges of an account, and a projection of how long its allowance will last.

Projections follow from past charges, which the analyst may read anyway. They are shown to people
and decide nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from accounting.account import fits_more
from accounting.privacy_loss import NANO, PrivacyLoss
from accounting.rho import pure_femto
from app.contract.budgets import AccountBalance, AnalystAccount, Point
from app.contract.times import moment
from app.identity.callers import Caller
from app.usecases.accounts import budgets
from app.usecases.accounts.arms import EPSILON, RHO, Arm, arm_of, share_left
from app.usecases.services import Services
from app.usecases.visibility import require

NOTHING = (0, 0, 0, 0)
#: The ε (in nano-epsilons) of a usual answer that is assumed for an analyst who has not sent a
#: query yet.
FIRST_EPSILON_NANO = NANO // 10
#: A projection uses only the charges of this many days, because habits change.
HABIT_DAYS = 30
#: Charges are shown by hour if all of them lie within this many hours, and otherwise by day.
HOURS = 48
#: A projection beyond this many days is too uncertain to show.
HORIZON_DAYS = 3650


@dataclass(frozen=True)
class Habit:
    """The charge of a usual answer, and the number of such answers that what is left pays for.

    ``measured``: True if ``charge`` is the mean of past charges, False if it is the default for
    beginners.
    """

    charge: str
    answers: int
    measured: bool


def habit(points: Sequence[Point], account: AccountBalance) -> Habit:
    """The habit by the mean charge of the queries in ``points``, at four significant digits."""
    arm, remaining = arm_of(account), account.remaining
    queries = sum(point.queries for point in points)
    charged = sum(arm.of(point.charged) for point in points)
    measured = queries > 0 and charged > 0
    if arm is RHO and measured:
        usual = _rounded(charged // queries)
        return Habit(arm.format(usual), remaining.rho_femto // usual, measured)
    usual = _rounded(charged // queries) if measured else FIRST_EPSILON_NANO
    # The number of answers is computed with the ρ of an ε-DP answer, the largest ρ at this ε.
    answer = (usual, 0, pure_femto(usual), 0)
    answers = fits_more((*remaining.amounts, 0), NOTHING, answer) or 0
    return Habit(EPSILON.format(usual), answers, measured)


def _rounded(units: int) -> int:
    """``units`` rounded down to four significant digits; at least 1."""
    step: int = 10 ** max(0, len(str(units)) - 4)
    return max(units // step * step, 1)


@dataclass(frozen=True)
class Moment:
    """An hour or a day with charges: their number, their sum, and what was left at its end.

    ``at``: its beginning. ``rest``: in units of the measure that counts for the account now.
    """

    at: datetime
    queries: int
    charged: PrivacyLoss
    rest: int


def burn_down(points: Sequence[Point], account: AccountBalance) -> list[Moment]:
    """The moments in ``points``, oldest first, with what was left of today's limit after each."""
    arm = arm_of(account)
    limit, rest = arm.limit(account), arm.rest(account)
    moments = []
    for point in sorted(points, key=lambda point: point.label, reverse=True):
        at = datetime.fromisoformat(point.label).replace(tzinfo=UTC)
        moments.append(Moment(at, point.queries, point.charged, min(rest, limit)))
        rest += arm.of(point.charged)
    return moments[::-1]


@dataclass(frozen=True)
class Projection:
    """When nothing is left at the pace of the last days: ``charged`` units in ``seconds``."""

    at: datetime
    charged: int
    seconds: int


def exhaustion(moments: Sequence[Moment], arm: Arm, now: datetime) -> Projection | None:
    """When nothing is left at the pace of the last ``HABIT_DAYS`` days; None if unknown."""
    recent = [one for one in moments if now - one.at < timedelta(days=HABIT_DAYS)]
    charged = sum(arm.of(one.charged) for one in recent)
    if not recent or charged <= 0:
        return None
    # Charges within less than an hour show no pace yet, so they count as the charges of a whole
    # hour.
    seconds = max(int((now - recent[0].at).total_seconds()), 3600)
    ahead = -(-moments[-1].rest * seconds // charged)
    if ahead > HORIZON_DAYS * 86_400:
        return None
    return Projection(now + timedelta(seconds=ahead), charged, seconds)


@dataclass(frozen=True)
class AccountSpending:
    """One account, what is left of it in percent, and the usual answer."""

    account: AnalystAccount
    habit: Habit

    @property
    def arm(self) -> Arm:
        return arm_of(self.account)

    @property
    def share(self) -> int:
        return share_left(self.account)


@dataclass(frozen=True)
class BurnDown:
    """What was left of an account after each hour or day with charges, and until when it lasts.

    ``moments``: by hour while all charges lie within ``HOURS`` hours, else by day; oldest first.
    """

    account: AccountBalance
    moments: list[Moment]
    now: datetime
    projected: Projection | None

    @property
    def arm(self) -> Arm:
        return arm_of(self.account)


@dataclass(frozen=True)
class AccountHistory:
    """The charges of one account by day and mechanism, and the usual answer."""

    spending: AccountSpending
    burn_down: BurnDown
    days: list[Moment]
    by_mechanism: list[Point]


def usual(
    services: Services, caller: Caller, accounts: Sequence[AnalystAccount]
) -> list[AccountSpending]:
    """The caller's ``accounts`` with the usual answer of each."""
    require(caller, "analyst")
    names = [account.dataset for account in accounts]
    points = budgets.histories(services, caller, names, by="kind")
    return [AccountSpending(one, habit(points[one.dataset], one)) for one in accounts]


def account_history(services: Services, caller: Caller, dataset: str) -> AccountHistory:
    """The charges of the caller's account for one dataset. Raises: NotFound."""
    account = budgets.own_account(services, caller, dataset)
    read = partial(budgets.history, services, caller, dataset)
    by_day = read(by="day").items
    return AccountHistory(
        spending=AccountSpending(account, habit(read(by="kind").items, account)),
        burn_down=_burn_down(services, account, by_day, lambda: read(by="hour").items),
        days=burn_down(by_day, account),
        by_mechanism=read(by="mechanism").items,
    )


def of_cap(services: Services, caller: Caller, dataset: str) -> BurnDown:
    """What was left of the cap, for the owner of the dataset and for auditors. Raises: NotFound."""
    cap, read = budgets.history_of_cap(services, caller, dataset)
    return _burn_down(services, cap, read("day"), lambda: read("hour"))


def _burn_down(
    services: Services,
    account: AccountBalance,
    by_day: list[Point],
    by_hour: Callable[[], list[Point]],
) -> BurnDown:
    now = moment(services.database.now_us())
    moments = burn_down(by_day, account)
    if moments and now - moments[0].at < timedelta(hours=HOURS):
        moments = burn_down(by_hour(), account)
    return BurnDown(account, moments, now, exhaustion(moments, arm_of(account), now))
