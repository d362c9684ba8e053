"""What a query would cost and promise: public facts only, so asking is free."""

from __future__ import annotations

from typing import Any

from fastapi import Body as BodyParameter
from fastapi.openapi.models import Example
from starlette.concurrency import run_in_threadpool

from accounting.privacy_loss import PrivacyLoss
from app.contract.amounts import MAX_QUERY_EPSILON_NANO, MIN_QUERY_EPSILON_NANO
from app.contract.models import Reply
from app.contract.problems import problems
from app.engine.requests import QuoteRequest
from app.http.access import CurrentUser, allow
from app.http.dependencies import ServicesDep
from app.http.routing import router
from app.queries import QUERY_KINDS
from app.usecases.visibility import visible
from mechanisms.model.errors import UnsupportedQuery
from storage.errors import NoRecords, NotFound

api = router(tags=["queries"])

EXAMPLES = {
    name: Example(summary=example.summary, value=example.request)
    for kind in QUERY_KINDS.values()
    for name, example in kind.examples.quotes.items()
}


class ChargeOut(Reply):
    epsilon: str
    delta: str
    neighbouring: str


class QuoteOut(Reply):
    """What the query would be charged, step by step, and what may be expected of its answer."""

    charge: ChargeOut
    steps: list[dict[str, Any]]
    accuracy: dict[str, Any]
    affordable: bool


@api.post(
    "/v1/quotes",
    dependencies=[allow("analyst")],
    responses=problems(NotFound, UnsupportedQuery, NoRecords),
)
async def quote(
    user: CurrentUser,
    services: ServicesDep,
    request: QuoteRequest = BodyParameter(openapi_examples=EXAMPLES),
) -> QuoteOut:
    """Price a query without asking it. Reads no records and costs nothing."""
    stored = await run_in_threadpool(visible, services.datasets, request.dataset, user)
    account = await run_in_threadpool(services.ledger.account, stored.id, user.id)
    if account is None:
        raise NotFound
    public = stored.public
    if public is None:
        raise NoRecords(stored.name)  # the node list is still to come
    if request.epsilon is not None:
        loss = PrivacyLoss(request.epsilon, request.query.delta_atto())
    else:
        loss = request.query.loss_reaching(public, request.target or {})
        if not MIN_QUERY_EPSILON_NANO <= loss.epsilon_nano <= MAX_QUERY_EPSILON_NANO:
            raise UnsupportedQuery("no epsilon between 0.000001 and 1000000 reaches this target")
    price = request.query.price(public, loss)
    cap = await run_in_threadpool(services.ledger.cap, stored.id)
    overall = await run_in_threadpool(services.ledger.overall, user.id)
    charged = [account, cap] if overall is None else [account, overall, cap]
    return QuoteOut(
        charge=ChargeOut(**loss.as_dict(), neighbouring=public.neighbouring.value),
        steps=[step.as_dict() for step in price.steps],
        accuracy=dict(price.accuracy()),
        affordable=all(one.account.admits(loss) and not one.frozen for one in charged),
    )
