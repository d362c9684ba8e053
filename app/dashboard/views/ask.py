"""The page that sends a query: a form, a free quote of the charge, and then the answer."""

import hashlib
import json
from dataclasses import dataclass, replace
from secrets import token_urlsafe
from typing import Annotated, Any

from fastapi import Query
from pydantic import TypeAdapter
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from accounting.account import remaining
from accounting.privacy_loss import PrivacyLoss, format_units, parse_units
from app.contract.errors import InvalidRequest
from app.contract.queries import QuoteOut
from app.dashboard import snippets
from app.dashboard.alerts import Alert, alert_of
from app.dashboard.builder import Builder, build, number
from app.dashboard.forms import Form, SentForm, read, read_json
from app.dashboard.pages import pages, to
from app.dashboard.visit import CurrentVisit, Visit
from app.http.access import allow
from app.http.declarations import counts_itself
from app.usecases import averages, datasets, queries, quotes
from app.usecases.accounts import budgets
from app.usecases.accounts.arms import admitting
from app.usecases.queries import QueryRequest
from app.usecases.quotes import QuoteRequest
from storage.errors import NotFound, StillRunning

#: Seconds that the page waits for an answer. After that the browser goes to the page of the query,
#: which is still running.
WAIT = 3.0
FIRST_EPSILON = "0.1"
QUOTE, QUERY = TypeAdapter[QuoteRequest](QuoteRequest), TypeAdapter[QueryRequest](QueryRequest)
Text = Annotated[str, Query(max_length=200)]


@dataclass(frozen=True)
class Quoted:
    """A quote with its exact request; the button sends this request, not the current form."""

    quote: QuoteOut
    request: str
    key: str
    remaining: dict[str, str]
    #: The measures by which the charge fits an account that counts in ρ: "by ε", "by ρ" or "by ε
    #: and by ρ". Empty in an account that counts in ε alone.
    admitted: str
    #: True if this would be the account's first charge without a finite ε. After it, charges fit by
    #: ρ alone, so the page warns.
    closes_epsilon: bool
    curl: str
    python: str


@pages.get("/ui/ask", dependencies=[allow("analyst")])
def question(visit: CurrentVisit, dataset: Text = "", kind: Text = "", form: Text = "") -> Response:
    """The form, by default for the first dataset and the first kind that it supports."""
    return _page(visit, Form({"dataset": [dataset], "kind": [kind], "form": [form]}))


@pages.post("/ui/ask/quote", dependencies=[allow("analyst")])
async def quoted(visit: CurrentVisit, form: SentForm) -> Response:
    """The price and the accuracy of the query in the form, without reading records; free."""
    quoted: Quoted | None = None
    alert: Alert | None = None
    try:
        builder = await run_in_threadpool(_builder, visit, form)
        body = _body(builder, form)
        price = await visit.run(quotes.quote, read(QUOTE, body))
        quoted = await run_in_threadpool(_quoted, visit, body, price)
    except NotFound:
        raise
    except Exception as error:
        alert = alert_of(error)
    return await run_in_threadpool(_page, visit, form, quoted, alert)


@pages.post("/ui/ask", dependencies=[allow("analyst"), counts_itself])
async def submit(visit: CurrentVisit, form: SentForm) -> Response:
    """Send the quoted query; sending the same form again returns the same answer, free."""
    text = form.get("request")
    query = read_json(QUERY, text)
    try:
        reply = await visit.run(queries.ask, query, _sent(form.get("key"), text), WAIT)
    except StillRunning as running:
        return to(f"/ui/queries/{running.id}")
    except Exception as error:
        facts: dict[str, Any] = {
            "alert": alert_of(error),
            "dataset": query.dataset,
            "kind": query.query.name,
        }
        return await run_in_threadpool(visit.render, "refused.html", **facts)
    return to(f"/ui/queries/{reply.query_id}")


@pages.get("/ui/ask/again", dependencies=[allow("analyst")])
async def again(visit: CurrentVisit, query: Text, rho: Text = "") -> Response:
    """The quote for what is missing of an own answer with Gaussian noise; free.

    ``rho``: the ρ of this answer and the next one together; twice that of this answer by default.
    """
    view = await visit.run(queries.look_up, query)
    is_table = view.query.query["kind"] == "table"
    if view.stored is None or not is_table or view.query.charge["epsilon"] is not None:
        raise NotFound
    paid = parse_units(view.query.charge["rho"] or "0", 15)
    facts: dict[str, Any] = {"rho": rho or format_units(2 * paid, 15), "alert": None}
    try:
        obstacle = await run_in_threadpool(visit.run, averages.against_another, view)
        if obstacle is not None:
            raise InvalidRequest.at("query", type="average", msg=obstacle)
        body = {"dataset": view.query.dataset, "query": view.query.query}
        in_all = read(QUOTE, {**body, "rho": facts["rho"]})
        if in_all.loss.rho_femto <= paid:
            text = "more than the rho of the answer so far is needed"
            raise InvalidRequest.at("query", "rho", type="amount_range", msg=text)
        rest = {**body, "rho": format_units(in_all.loss.rho_femto - paid, 15)}
        whole = await visit.run(quotes.quote, in_all)
        price = await visit.run(quotes.quote, read(QUOTE, rest))
        price = price.model_copy(update={"accuracy": whole.accuracy})
        facts["quoted"] = await run_in_threadpool(_quoted, visit, rest, price)
    except NotFound:
        raise
    except Exception as error:
        facts["alert"] = alert_of(error)
    facts |= {
        "id": view.query.id,
        "question": view.query.question,
        "paid": format_units(paid, 15),
        "account": await run_in_threadpool(visit.run, budgets.own_account, view.query.dataset),
    }
    return await run_in_threadpool(visit.render, "again.html", **facts)


def _page(
    visit: Visit, form: Form, quoted: Quoted | None = None, alert: Alert | None = None
) -> Response:
    accounts = visit.run(datasets.queryable)
    builder = _builder(visit, form) if accounts else None
    return visit.render_part(
        "ask.html",
        accounts=accounts,
        account=next((a for a in accounts if builder and a.dataset == builder.facts.name), None),
        builder=builder,
        quoted=quoted,
        alert=alert,
        epsilon=form.get("epsilon") or ("" if form.get("target.value") else FIRST_EPSILON),
        rho=form.get("rho"),
        target=form.get("target"),
        target_value=form.get("target.value"),
    )


def _builder(visit: Visit, form: Form) -> Builder:
    name = form.get("dataset") or next((a.dataset for a in visit.run(datasets.queryable)), "")
    facts = visit.run(datasets.facts, name)
    return build(facts, form.get("kind"), form.get("form"), form)


def _body(builder: Builder, form: Form) -> dict[str, Any]:
    """The body of a quote: with ρ or the target accuracy if that is filled in, otherwise with ε."""
    body: dict[str, Any] = {"dataset": builder.facts.name}
    if rho := form.get("rho"):
        body["rho"] = rho
    elif target := form.get("target.value"):
        body["target"] = {form.get("target"): number(target, "target")}
    else:
        body["epsilon"] = form.get("epsilon") or FIRST_EPSILON
    return {**body, "query": builder.query(form)}


def _quoted(visit: Visit, body: dict[str, Any], price: QuoteOut) -> Quoted:
    account = visit.run(budgets.own_account, body["dataset"])
    # The request holds only the fields that the form has filled. The service adds the defaults
    # itself.
    epsilon = price.charge.epsilon
    amount = {"rho": price.charge.rho} if epsilon is None else {"epsilon": epsilon}
    whole = {"dataset": body["dataset"], **amount, "query": body["query"]}
    base, key = str(visit.request.base_url).rstrip("/"), token_urlsafe(12)
    text = json.dumps(whole, ensure_ascii=False)
    # The button and the two example programs send the same idempotency key. Using all three
    # therefore charges the account only once.
    sent = _sent(key, text)
    charged = PrivacyLoss.parse(epsilon or "0", price.charge.delta)
    rho = parse_units(price.charge.rho, 15)
    charged = replace(charged, rho_femto=rho, unpriced=int(epsilon is None))
    rest = remaining(account.remaining.amounts, charged.amounts)
    arms = admitting(account, charged) if account.counts_rho else []
    return Quoted(
        quote=price,
        request=text,
        key=key,
        # If the allowance is counted in ρ (zero-concentrated differential privacy), a charge may
        # fit although its ε exceeds the remaining ε. That remainder is then shown as 0.
        remaining=rest.as_dict(account.counts_rho),
        admitted=" and ".join(f"by {arm.symbol}" for arm in arms),
        closes_epsilon=charged.unpriced > 0 and not account.spent.unpriced,
        curl=snippets.curl(base, whole, sent),
        python=snippets.python(base, whole, sent),
    )


def _sent(key: str, text: str) -> str:
    """The idempotency key of a quoted request; it depends on the page and the request text."""
    return f"ui-{hashlib.sha256((key + text).encode()).hexdigest()[:40]}"
