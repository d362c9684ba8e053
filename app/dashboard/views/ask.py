"""Asking: a form for the question, a quote before anything is spent, and then the answer."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from secrets import token_urlsafe
from typing import Annotated, Any

from fastapi import Query, Request
from pydantic import TypeAdapter
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from app.contract.queries import QuoteOut
from app.dashboard import snippets
from app.dashboard.alerts import Alert, alert_of
from app.dashboard.builder import Builder, build, number
from app.dashboard.forms import Form, SentForm, read, read_json
from app.dashboard.pages import pages as pages_router
from app.dashboard.pages import to
from app.dashboard.templating import render
from app.http.access import Caller, CurrentCaller, allow
from app.http.declarations import counts_itself
from app.http.dependencies import ServicesDep
from app.usecases import budgets, datasets, queries, quotes
from app.usecases.queries import QueryRequest
from app.usecases.quotes import QuoteRequest
from app.usecases.services import Services
from storage.errors import NotFound, StillRunning

pages = pages_router()

#: Seconds to wait for an answer before the page of the running query is shown.
WAIT = 3.0
FIRST_EPSILON = "0.1"
QUOTE, QUERY = TypeAdapter[QuoteRequest](QuoteRequest), TypeAdapter[QueryRequest](QueryRequest)
Text = Annotated[str, Query(max_length=200)]


@dataclass(frozen=True)
class Quoted:
    """A quote with the very request that it is for: that one is asked, not the form."""

    quote: QuoteOut
    request: str
    key: str
    remaining: dict[str, str]
    curl: str
    python: str


@pages.get("/ui/ask", dependencies=[allow("analyst")])
def question(
    request: Request,
    caller: CurrentCaller,
    services: ServicesDep,
    dataset: Text = "",
    kind: Text = "",
    form: Text = "",
) -> Response:
    """The form; without a choice, for the first dataset and the first kind that there is."""
    form_values = Form({"dataset": [dataset], "kind": [kind], "form": [form]})
    return _page(request, caller, services, form_values)


@pages.post("/ui/ask/quote", dependencies=[allow("analyst")])
async def quoted(
    request: Request, caller: CurrentCaller, services: ServicesDep, form: SentForm
) -> Response:
    """What it would cost and promise: reads no records and costs nothing."""
    quoted: Quoted | None = None
    alert: Alert | None = None
    try:
        builder = await run_in_threadpool(_builder, caller, services, form)
        body = _body(builder, form)
        request_body = read(QUOTE, body)
        price = await quotes.quote(services, caller, request_body)
        quoted = await run_in_threadpool(
            _quoted, request, caller, services, request_body, body, price
        )
    except Exception as error:
        if isinstance(error, NotFound):
            raise
        alert = alert_of(error)
    return await run_in_threadpool(_page, request, caller, services, form, quoted, alert)


@pages.post("/ui/ask", dependencies=[allow("analyst"), counts_itself])
async def submit(
    request: Request, caller: CurrentCaller, services: ServicesDep, form: SentForm
) -> Response:
    """Ask what was quoted, once: the same form sent again leads to the same answer."""
    text = form.get("request")
    query = read_json(QUERY, text)
    try:
        key = _sent(form.get("key"), text)
        reply = await queries.ask(services, caller, query, key, WAIT)
    except StillRunning as running:
        return to(f"/ui/queries/{running.id}")
    except Exception as error:
        alert = alert_of(error)
        return await run_in_threadpool(
            render,
            request,
            "refused.html",
            alert.status,
            alert=alert,
            dataset=query.dataset,
            kind=query.query.name,
        )
    return to(f"/ui/queries/{reply.query_id}")


def _page(
    request: Request,
    caller: Caller,
    services: Services,
    form: Form,
    quoted: Quoted | None = None,
    alert: Alert | None = None,
) -> Response:
    accounts = datasets.queryable(services, caller)
    builder = None
    if accounts:
        builder = _builder(caller, services, form)
    # A part that is replaced while one types is not a failed page.
    status = alert.status if alert and "hx-request" not in request.headers else 200
    return render(
        request,
        "ask.html",
        status,
        accounts=accounts,
        account=next((a for a in accounts if builder and a.dataset == builder.facts.name), None),
        builder=builder,
        quoted=quoted,
        alert=alert,
        epsilon=form.get("epsilon") or ("" if form.get("target.value") else FIRST_EPSILON),
        target=form.get("target"),
        target_value=form.get("target.value"),
    )


def _builder(caller: Caller, services: Services, form: Form) -> Builder:
    accounts = datasets.queryable(services, caller)
    name = form.get("dataset") or next((a.dataset for a in accounts), "")
    facts = datasets.facts(services, caller, name)
    return build(facts, form.get("kind"), form.get("form"), form)


def _body(builder: Builder, form: Form) -> dict[str, Any]:
    """The body of a quote: with ε, or with the accuracy to be reached where that is filled in."""
    body: dict[str, Any] = {"dataset": builder.facts.name}
    if target := form.get("target.value"):
        body["target"] = {form.get("target"): number(target, "target")}
    else:
        body["epsilon"] = form.get("epsilon") or FIRST_EPSILON
    return {**body, "query": builder.query(form)}


def _quoted(
    request: Request,
    caller: Caller,
    services: Services,
    quote: QuoteRequest,
    body: dict[str, Any],
    price: QuoteOut,
) -> Quoted:
    account = budgets.own_account(services, caller, quote.dataset)
    # What is shown is what was written in the form: defaults stay with the service.
    whole = {
        "dataset": quote.dataset,
        "epsilon": price.charge.epsilon,
        "query": body["query"],
    }
    base, key = str(request.base_url).rstrip("/"), token_urlsafe(12)
    text = json.dumps(whole, ensure_ascii=False)
    # The button and the lines are one question: whichever comes first is charged.
    sent = _sent(key, text)
    charged = read(QUERY, whole).loss
    budget = account.remaining
    return Quoted(
        quote=price,
        request=text,
        key=key,
        remaining=(budget - charged).as_dict() if charged.fits(budget) else {},
        curl=snippets.curl(base, whole, sent),
        python=snippets.python(base, whole, sent),
    )


def _sent(key: str, text: str) -> str:
    """The idempotency key of a quoted request: the same page for another one is another one."""
    return f"ui-{hashlib.sha256((key + text).encode()).hexdigest()[:40]}"
