"""Grants: analyst × dataset, what they add up to against the cap, and what one would buy."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import Request
from pydantic import TypeAdapter
from starlette.responses import Response

from accounting.privacy_loss import PrivacyLoss
from app.contract.amounts import Limit
from app.contract.budgets import DatasetBudgets, GrantedAccount
from app.dashboard.alerts import Alert, alert_of
from app.dashboard.forms import Form, SentForm, read
from app.dashboard.pages import pages as pages_router
from app.dashboard.templating import render
from app.http.access import Caller, CurrentCaller, allow
from app.http.dependencies import ServicesDep
from app.usecases import budgets, purchases
from app.usecases.services import Services
from app.usecases.spending import percent

pages = pages_router()

LIMIT: TypeAdapter[PrivacyLoss] = TypeAdapter(Limit)
#: Datasets of one page; the accounts of others are in the API.
MOST = 200


@dataclass(frozen=True)
class Row:
    """One dataset with its accounts by analyst; ``share`` of the cap is spent, in percent."""

    name: str
    budgets: DatasetBudgets
    accounts: dict[str, GrantedAccount]
    share: int


@pages.get("/ui/grants", dependencies=[allow("owner", "auditor")])
def grants_page(request: Request, caller: CurrentCaller, services: ServicesDep) -> Response:
    """Every account of every dataset that the caller owns or audits."""
    form = Form({"dataset": [request.query_params.get("dataset", "")]})
    return _page(request, caller, services, form)


@pages.post("/ui/grants", dependencies=[allow("owner")])
def grant(
    request: Request, caller: CurrentCaller, services: ServicesDep, form: SentForm
) -> Response:
    """Set an allowance, or only preview what it would buy."""
    offers: list[purchases.Purchase] = []
    alert: Alert | None = None
    done = ""
    try:
        dataset, analyst = form.get("dataset"), form.get("analyst")
        limit = read(LIMIT, {"epsilon": form.get("epsilon"), "delta": form.get("delta") or "0"})
        if form.get("do") == "preview":
            offers = purchases.preview(services, caller, dataset, limit)
        else:
            budgets.grant(services, caller, dataset, analyst, limit)
            done = f"{analyst} may now learn ε {limit.as_dict()['epsilon']} of {dataset}."
    except Exception as error:
        alert = alert_of(error)
    return _page(request, caller, services, form, offers, alert, done)


def _page(
    request: Request,
    caller: Caller,
    services: Services,
    form: Form,
    offers: list[purchases.Purchase] | None = None,
    alert: Alert | None = None,
    done: str = "",
) -> Response:
    overview = budgets.overview(services, caller, MOST)
    rows = [_row(name, one) for name, one in overview.datasets.items()]
    analysts = sorted({name for row in rows for name in row.accounts})
    status = alert.status if alert and "hx-request" not in request.headers else 200
    names = ("dataset", "analyst", "epsilon", "delta")
    return render(
        request,
        "grants.html",
        status,
        rows=rows,
        analysts=analysts,
        may_grant=overview.may_grant,
        purchases=offers or [],
        alert=alert,
        done=done,
        sent={name: form.get(name) for name in names},
    )


def _row(name: str, one: DatasetBudgets) -> Row:
    accounts = {account.analyst: account for account in one.items}
    return Row(name, one, accounts, percent(one.exposure.spent, one.cap.allowance))
