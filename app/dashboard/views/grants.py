"""The page of grants: allowances by dataset and analyst, the caps, and previews of a grant."""

from dataclasses import dataclass

from starlette.responses import Response

from app.contract.budgets import DatasetBudgets, GrantedAccount
from app.dashboard.alerts import Alert, alert_of
from app.dashboard.forms import Form, SentForm, sent_allowance
from app.dashboard.pages import pages
from app.dashboard.visit import CurrentVisit, Visit
from app.http.access import allow
from app.usecases import budgets, purchases
from app.usecases.spending import percent

#: The most datasets on the page; the API lists the accounts of all others.
MOST = 200


@dataclass(frozen=True)
class Row:
    """One dataset with its accounts by analyst; ``share`` is the spent percentage of the cap."""

    name: str
    budgets: DatasetBudgets
    accounts: dict[str, GrantedAccount]
    share: int


@pages.get("/ui/grants", dependencies=[allow("owner", "auditor")])
def grants_page(visit: CurrentVisit) -> Response:
    """Every account of every dataset that the caller owns or audits."""
    return _page(visit, Form({"dataset": [visit.request.query_params.get("dataset", "")]}))


@pages.post("/ui/grants", dependencies=[allow("owner")])
def grant(visit: CurrentVisit, form: SentForm) -> Response:
    """Set an allowance, or only preview the answers that it would pay for."""
    offers: list[purchases.Purchase] = []
    alert: Alert | None = None
    done = ""
    try:
        dataset, analyst, limit = form.get("dataset"), form.get("analyst"), sent_allowance(form)
        if form.get("do") == "preview":
            offers = visit.run(purchases.preview, dataset, limit.loss)
        else:
            visit.run(budgets.grant, dataset, analyst, limit)
            done = f"{analyst} may now learn ε {limit.as_dict()['epsilon']} of {dataset}."
    except Exception as error:
        alert = alert_of(error)
    return _page(visit, form, offers, alert, done)


def _page(
    visit: Visit,
    form: Form,
    offers: list[purchases.Purchase] | None = None,
    alert: Alert | None = None,
    done: str = "",
) -> Response:
    overview = visit.run(budgets.overview, MOST)
    rows = [_row(name, one) for name, one in overview.datasets.items()]
    names = ("dataset", "analyst", "epsilon", "delta", "composition_delta", "gaussian")
    return visit.render_part(
        "grants.html",
        rows=rows,
        analysts=sorted({name for row in rows for name in row.accounts}),
        may_grant=overview.may_grant,
        purchases=offers or [],
        alert=alert,
        done=done,
        sent={name: form.get(name) for name in names},
    )


def _row(name: str, one: DatasetBudgets) -> Row:
    accounts = {account.analyst: account for account in one.items}
    return Row(name, one, accounts, percent(one.exposure.spent, one.cap.allowance.loss))
