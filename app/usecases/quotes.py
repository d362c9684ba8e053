"""Quotes: the price and the accuracy of a query. They use public facts only, so they are free."""

import asyncio

from app.contract.amounts import MAX_QUERY_EPSILON_NANO, MIN_QUERY_EPSILON_NANO
from app.contract.errors import UnsupportedQuery
from app.contract.queries import ChargeOut, QuoteOut
from app.engine.execution import inline_if_embedded
from app.engine.requests import QuoteRequest as QuoteRequest
from app.identity.callers import Caller
from app.usecases.services import Services
from app.usecases.visibility import require
from storage.errors import NoRecords, NotFound
from storage.queries.lookup import LookedUp, QueryLookup


async def quote(services: Services, caller: Caller, request: QuoteRequest) -> QuoteOut:
    """The price and the accuracy of a query that is not run. Reads no records, charges nothing.

    Raises: NotFound, UnsupportedQuery, TooCostly, NoRecords; RateLimited or Busy if too many quotes
        with a target are under way.
    """
    require(caller, "analyst")
    look_up = QueryLookup(services.database, services.datasets, services.ledger).look_up
    dataset = await inline_if_embedded(
        services.database, look_up, request.dataset, caller.user, None, b""
    )
    assert isinstance(dataset, LookedUp), "without a key there is no replay"
    if dataset.charged is None:
        raise NotFound
    public = dataset.facts.public
    if public is None:
        # The owner has not uploaded the graph's node list yet, so the query has no price.
        raise NoRecords(dataset.name)
    query = request.query.in_rho() if dataset.counts_rho else request.query
    if request.target is None:
        loss = request.loss
    else:
        # Finding the ε that reaches the target may take seconds for forests. So it runs in a thread
        # beside the event loop, and within the limit on such threads of one analyst.
        with services.reads.slot(caller.id):
            loss = await asyncio.to_thread(query.loss_reaching, public, request.target)
        if not MIN_QUERY_EPSILON_NANO <= loss.epsilon_nano <= MAX_QUERY_EPSILON_NANO:
            raise UnsupportedQuery("no epsilon between 0.000001 and 1000000 reaches this target")
    price = query.price(public, loss)
    charge = price.charge()
    refusal = dataset.refusal(charge)
    seconds = services.answering.deadline(query, query.cost(public, loss))
    return QuoteOut(
        charge=ChargeOut(**charge.as_charge(), neighbouring=public.neighbouring.value),
        steps=[step.as_dict() for step in price.steps],
        accuracy=dict(price.accuracy()),
        resolved=dict(price.resolved),
        order_preserving=price.order_preserving,
        seconds=seconds,
        affordable=refusal is None,
        reason=None if refusal is None else str(refusal),
        fits_more=dataset.fits_more(charge),
    )
