"""The pages of requests for budget: an analyst asks, and the owner of the dataset decides."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter
from starlette.responses import Response

from app.contract.budget_requests import BudgetRequestIn, DecisionIn
from app.contract.texts import MOST_CHARACTERS
from app.dashboard.alerts import Alert, alert_of
from app.dashboard.forms import Form, SentForm, read, sent_end
from app.dashboard.pages import pages, to
from app.dashboard.visit import PAGE, CurrentVisit, Visit
from app.http.access import allow
from app.http.dependencies import PageCursor
from app.usecases.accounts import budget_requests
from storage.errors import NotFound

REQUEST: TypeAdapter[BudgetRequestIn] = TypeAdapter(BudgetRequestIn)
DECISION: TypeAdapter[DecisionIn] = TypeAdapter(DecisionIn)


@pages.get("/ui/datasets/{name}/requests", dependencies=[allow("owner", "analyst")])
def requests_page(visit: CurrentVisit, name: str, cursor: PageCursor = None) -> Response:
    """The requests on a dataset that the caller may see, and the form of an analyst."""
    return _list(visit, name, Form({}), cursor)


@pages.post("/ui/datasets/{name}/requests", dependencies=[allow("analyst")])
def request_one(visit: CurrentVisit, name: str, form: SentForm) -> Response:
    """Request an allowance."""
    body = {
        "epsilon": form.get("epsilon"),
        "delta": form.get("delta") or "0",
        "purpose": _paragraph(form.get("purpose")),
        **sent_end(form),
    }
    try:
        visit.run(budget_requests.make, name, read(REQUEST, body))
    except NotFound:
        raise
    except Exception as error:
        return _list(visit, name, form, alert=alert_of(error))
    return to(f"/ui/datasets/{name}/requests")


@pages.get("/ui/datasets/{name}/requests/{id}", dependencies=[allow("owner")])
def request_page(visit: CurrentVisit, name: str, id: str) -> Response:
    """One request, what a grant would buy, and the form of the decision."""
    return _one(visit, name, id)


@pages.post("/ui/datasets/{name}/requests/{id}", dependencies=[allow("owner")])
def decide_one(visit: CurrentVisit, name: str, id: str, form: SentForm) -> Response:
    """Grant or refuse a request."""
    body: dict[str, Any] = {
        "decision": form.get("decision"),
        "reason": _paragraph(form.get("reason")),
    }
    if body["decision"] == "grant":
        amounts = {"epsilon": form.get("epsilon"), "delta": form.get("delta") or "0"}
        body |= {**amounts, "until": None, **sent_end(form)}
    try:
        visit.run(budget_requests.decide, name, id, read(DECISION, body))
    except NotFound:
        raise
    except Exception as error:
        return _one(visit, name, id, alert_of(error), form)
    return to(f"/ui/datasets/{name}/requests")


@pages.post("/ui/datasets/{name}/requests/{id}/erase", dependencies=[allow("owner", "analyst")])
def erase_one(visit: CurrentVisit, name: str, id: str) -> Response:
    """Erase the texts of a request; an open one is withdrawn."""
    visit.run(budget_requests.erase, name, id)
    return to(f"/ui/datasets/{name}/requests")


def _paragraph(text: str) -> str:
    """The text without line breaks: a field of several lines has them where its author typed."""
    return " ".join(line.strip() for line in text.splitlines()).strip()


def _list(
    visit: Visit, name: str, form: Form, cursor: str | None = None, alert: Alert | None = None
) -> Response:
    page = visit.run(budget_requests.page, name, PAGE, cursor)
    names = ("epsilon", "delta", "purpose", "until")
    return visit.render(
        "budget_requests.html",
        dataset=name,
        requests=page.items,
        next=page.next,
        rights=visit.run(budget_requests.rights, name),
        sent={name: form.get(name) for name in names},
        most=MOST_CHARACTERS,
        alert=alert,
    )


def _one(
    visit: Visit, name: str, id: str, alert: Alert | None = None, form: Form | None = None
) -> Response:
    outlook = visit.run(budget_requests.outlook, name, id)
    request = outlook.request
    until = request.until or (outlook.account and outlook.account.until)
    sent = {
        "epsilon": request.epsilon,
        "delta": request.delta,
        "until": until.date().isoformat() if until else "",
        "reason": "",
    }
    if form is not None:
        sent = {name: form.get(name) for name in sent}
    return visit.render(
        "budget_request.html",
        dataset=name,
        outlook=outlook,
        request=request,
        sent=sent,
        most=MOST_CHARACTERS,
        alert=alert,
    )
