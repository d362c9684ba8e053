"""Grants: analyst × dataset, what they add up to against the cap, and what one would buy."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import Request
from pydantic import TypeAdapter
from starlette.responses import Response

from accounting.privacy_loss import PrivacyLoss
from app.contract.amounts import Limit
from app.contract.errors import InvalidRequest
from app.dashboard.alerts import Alert, alert_of
from app.dashboard.facts import facts_of
from app.dashboard.forms import Form, SentForm, read
from app.dashboard.pages import pages as pages_router
from app.dashboard.purchase import Purchase, purchases
from app.dashboard.templating import render
from app.http.access import CurrentUser, allow
from app.http.dependencies import ServicesDep
from app.routes.budgets import DatasetBudgets, GrantedAccount, set_allowance, show_budgets
from app.usecases.services import Services
from app.usecases.visibility import owned
from storage.people.users import User

pages = pages_router()

LIMIT: TypeAdapter[PrivacyLoss] = TypeAdapter(Limit)
#: Datasets of one page; who has more finds each one's accounts in the API.
MOST = 200


@dataclass(frozen=True)
class Row:
    """One dataset with its accounts by analyst; ``share`` of the cap is spent, in percent."""

    name: str
    budgets: DatasetBudgets
    accounts: dict[str, GrantedAccount]
    share: int


@pages.get("/ui/grants", dependencies=[allow("owner", "auditor")])
def grants(request: Request, user: CurrentUser, services: ServicesDep) -> Response:
    """Every account of every dataset that the caller owns or audits."""
    given = Form({"dataset": [request.query_params.get("dataset", "")]})
    return _page(request, user, services, given)


@pages.post("/ui/grants", dependencies=[allow("owner")])
def grant(request: Request, owner: CurrentUser, services: ServicesDep, form: SentForm) -> Response:
    """Set an allowance, or show what it would buy when that was asked."""
    found: list[Purchase] = []
    alert: Alert | None = None
    done = ""
    try:
        dataset, analyst = form.get("dataset"), form.get("analyst")
        limit = read(LIMIT, {"epsilon": form.get("epsilon"), "delta": form.get("delta") or "0"})
        if form.get("do") == "preview":
            stored = owned(services.datasets, dataset, owner)
            if stored.public is None:
                raise InvalidRequest.at("dataset", type="nodes", msg="it has no nodes yet")
            found = purchases(facts_of(stored), stored.public, limit)
        else:
            set_allowance(dataset, analyst, limit, owner, services, Response())
            done = f"{analyst} may now learn ε {limit.as_dict()['epsilon']} of {dataset}."
    except Exception as error:
        alert = alert_of(error)
    return _page(request, owner, services, form, found, alert, done)


def _page(
    request: Request,
    user: User,
    services: Services,
    form: Form,
    found: list[Purchase] | None = None,
    alert: Alert | None = None,
    done: str = "",
) -> Response:
    rows = [_row(name, user, services) for name in _names(user, services)]
    analysts = sorted({name for row in rows for name in row.accounts})
    status = alert.status if alert and "hx-request" not in request.headers else 200
    names = ("dataset", "analyst", "epsilon", "delta")
    return render(
        request,
        "grants.html",
        status,
        rows=rows,
        analysts=analysts,
        may_grant="owner" in user.roles,
        purchases=found or [],
        alert=alert,
        done=done,
        given={name: form.get(name) for name in names},
    )


def _names(user: User, services: Services) -> list[str]:
    """The caller's own datasets; all of them for auditors."""
    page = services.datasets.page(user, MOST)
    return sorted(
        stored.name
        for stored in page.items
        if "auditor" in user.roles or stored.owner_id == user.id
    )


def _row(name: str, user: User, services: Services) -> Row:
    budgets = show_budgets(name, user, services)
    cap = budgets.cap.allowance.epsilon_nano
    share = budgets.exposure.spent.epsilon_nano * 100 // cap if cap else 0
    return Row(name, budgets, {one.analyst: one for one in budgets.items}, share)
