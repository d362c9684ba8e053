"""The pages of an analyst's allowances: all of them, and the spending of one."""

from dataclasses import dataclass

from starlette.responses import Response

from app.contract.budgets import AccountBalance, AnalystAccount
from app.dashboard.burn_down import burn_down_chart
from app.dashboard.pages import pages
from app.dashboard.search import search_page
from app.dashboard.visit import CurrentVisit
from app.http.access import allow
from app.usecases.accounts import budgets, spending
from app.usecases.accounts.arms import is_exhausted, is_low, other_arm, share_left

#: The number of allowances on one page. Each has a card.
CARDS = 24


@dataclass(frozen=True)
class State:
    """A summary of an account; ``tone`` selects its colour: "good", "warn" or "bad"."""

    name: str
    tone: str


@pages.get("/ui/budgets", dependencies=[allow("analyst")])
def budgets_page(visit: CurrentVisit) -> Response:
    """The allowances of the analyst, those first that are nearly spent."""
    own = visit.run(budgets.own)
    orders = {
        "nearly spent": _by_share,
        "name": lambda account: account.dataset,
        "most spent": lambda account: (-account.spent.epsilon_nano, account.dataset),
    }
    listed = search_page(visit, own.items, lambda account: account.dataset, orders, CARDS)
    cards = visit.run(spending.usual, listed.items)
    most = max((account.spent.epsilon_nano for account in own.items), default=0)
    return visit.render(
        "budgets.html",
        listed=listed,
        cards=[(one, state_of(one.account)) for one in cards],
        overall=own.overall,
        key=own.key,
        shares={
            account.dataset: account.spent.epsilon_nano * 100 // most if most else 0
            for account in listed.items
        },
    )


@pages.get("/ui/budgets/{dataset}", dependencies=[allow("analyst")])
def budget_page(visit: CurrentVisit, dataset: str) -> Response:
    """How one allowance was spent, and when nothing of it will be left."""
    history = visit.run(spending.account_history, dataset)
    account = history.spending.account
    arm = history.spending.arm
    whole = sum(arm.of(one.charged) for one in history.by_mechanism)
    return visit.render(
        "budget.html",
        own=history.spending,
        state=state_of(account),
        days=history.days[::-1],
        chart=burn_down_chart(history.burn_down),
        pace=history.burn_down,
        other=other_arm(account),
        spending=[
            (one, arm.of(one.charged) * 100 // whole if whole else 0)
            for one in history.by_mechanism
        ],
    )


def state_of(account: AccountBalance) -> State:
    """The summary of an account; "exhausted" means less than the smallest possible charge."""
    if account.is_over:
        return State("ended", "bad")
    if is_exhausted(account):
        return State("exhausted", "bad")
    return State("nearly spent", "warn") if is_low(account) else State("open", "good")


def _by_share(account: AnalystAccount) -> tuple[int, str]:
    return share_left(account), account.dataset
