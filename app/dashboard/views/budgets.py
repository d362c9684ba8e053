"""The pages of an analyst's allowances: all of them, and the spending of one by day."""

from dataclasses import dataclass

from starlette.responses import Response

from accounting.privacy_loss import PrivacyLoss, parse_units
from app.contract.amounts import MIN_QUERY_EPSILON_NANO
from app.contract.budgets import AccountBalance
from app.dashboard.burn_down import burn_down_chart
from app.dashboard.pages import pages
from app.dashboard.visit import CurrentVisit
from app.http.access import allow
from app.usecases import spending
from app.usecases.notices import LOW
from app.usecases.spending import percent


@dataclass(frozen=True)
class State:
    """A summary of an account; ``tone`` selects its colour: "good", "warn" or "bad"."""

    name: str
    tone: str


@pages.get("/ui/budgets", dependencies=[allow("analyst")])
def budgets_page(visit: CurrentVisit) -> Response:
    """Every allowance of the analyst."""
    own = visit.run(spending.accounts)
    spent = [one.account.spent.epsilon_nano for one in own.accounts]
    most = PrivacyLoss(max(spent, default=0))
    return visit.render(
        "budgets.html",
        cards=[(one, state_of(one.account)) for one in own.accounts],
        overall=own.overall,
        key=own.key,
        shares={one.account.dataset: percent(one.account.spent, most) for one in own.accounts},
    )


@pages.get("/ui/budgets/{dataset}", dependencies=[allow("analyst")])
def budget_page(visit: CurrentVisit, dataset: str) -> Response:
    """How one allowance was spent, and when it will be gone."""
    history = visit.run(spending.account_history, dataset)
    account = history.spending.account
    chart = None
    if history.days and account.allowance.epsilon_nano:
        chart = burn_down_chart(
            history.days, account.allowance.epsilon_nano, history.today, history.projected
        )
    return visit.render(
        "budget.html",
        own=history.spending,
        state=state_of(account),
        days=history.days[::-1],
        chart=chart,
        projected=history.projected,
        rho_share=rho_share(account),
        spending=[(one, percent(one.charged, account.spent)) for one in history.by_mechanism],
    )


def rho_share(account: AccountBalance) -> int:
    """The part of the limit in ρ that is left, in percent; 0 where ε alone counts."""
    limit = account.allowance.rho_femto
    return account.remaining.rho_femto * 100 // limit if limit else 0


def state_of(account: AccountBalance) -> State:
    """The summary of an account; "exhausted" means less than the smallest possible charge."""
    if parse_units(account.largest_epsilon, 9) < MIN_QUERY_EPSILON_NANO:
        return State("exhausted", "bad")
    share = percent(account.remaining, account.allowance.loss)
    if max(share, rho_share(account)) < LOW:
        return State("nearly spent", "warn")
    return State("open", "good")
