"""An analyst's allowances: a card a dataset, and how one of them was spent."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import Request
from starlette.responses import Response

from app.contract.times import moment
from app.dashboard.charts.burn_down import burn_down_chart
from app.dashboard.pages import pages as pages_router
from app.dashboard.standing import Habit, State, burn_down, exhaustion, habit, share_left, state_of
from app.dashboard.templating import render
from app.http.access import CurrentUser, allow
from app.http.dependencies import ServicesDep
from app.routes.budgets import AccountOut, own_budgets
from app.routes.history import budget_history
from app.usecases.services import Services
from storage.errors import NotFound
from storage.people.users import User

pages = pages_router()


@dataclass(frozen=True)
class Card:
    """One account with what a person wants to know of it first."""

    account: AccountOut
    share: int
    state: State
    habit: Habit


@pages.get("/ui/budgets", dependencies=[allow("analyst")])
def budgets(request: Request, user: CurrentUser, services: ServicesDep) -> Response:
    """Every allowance of the analyst."""
    own = own_budgets(user, services)
    cards = [_card(account, user, services) for account in own.items]
    most = max((card.account.spent.epsilon_nano for card in cards), default=0)
    shares = {
        card.account.dataset: card.account.spent.epsilon_nano * 100 // most if most else 0
        for card in cards
    }
    return render(request, "budgets.html", cards=cards, overall=own.overall, shares=shares)


@pages.get("/ui/budgets/{dataset}", dependencies=[allow("analyst")])
def budget(request: Request, dataset: str, user: CurrentUser, services: ServicesDep) -> Response:
    """How one allowance was spent, and when it will be gone."""
    account = next((a for a in own_budgets(user, services).items if a.dataset == dataset), None)
    if account is None:
        raise NotFound
    by_mechanism = budget_history(dataset, user, services, by="mechanism").items
    days = burn_down(budget_history(dataset, user, services, by="day").items, account.allowance)
    today = moment(services.database.now_us()).date()
    projected = exhaustion(days, today)
    chart = None
    if days and account.allowance.epsilon_nano:
        chart = burn_down_chart(days, account.allowance.epsilon_nano, today, projected)
    spent = account.spent.epsilon_nano
    return render(
        request,
        "budget.html",
        card=_card(account, user, services),
        days=days[::-1],
        chart=chart,
        projected=projected,
        spending=[(p, p.charged.epsilon_nano * 100 // spent if spent else 0) for p in by_mechanism],
    )


def _card(account: AccountOut, user: User, services: Services) -> Card:
    points = budget_history(account.dataset, user, services, by="kind").items
    return Card(account, share_left(account), state_of(account), habit(points, account.remaining))
