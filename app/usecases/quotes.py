"""Quotes: the price and the accuracy of a query. They use public facts only, so they are free."""

from starlette.concurrency import run_in_threadpool

from accounting.privacy_loss import PrivacyLoss
from app.contract.amounts import MAX_QUERY_EPSILON_NANO, MIN_QUERY_EPSILON_NANO
from app.contract.errors import UnsupportedQuery
from app.contract.queries import ChargeOut, QuoteOut
from app.engine.admission import check_cost
from app.engine.requests import QuoteRequest as QuoteRequest
from app.identity.callers import Caller
from app.usecases.services import Services
from app.usecases.visibility import require, visible
from storage.errors import NoRecords, NotFound


async def quote(services: Services, caller: Caller, request: QuoteRequest) -> QuoteOut:
    """The price and the accuracy of a query that is not run. Reads no records, charges nothing.

    Raises: NotFound, UnsupportedQuery, TooCostly, NoRecords.
    """
    require(caller, "analyst")
    stored = await run_in_threadpool(visible, services, caller, request.dataset)
    account = await run_in_threadpool(services.ledger.account, stored.id, caller.id)
    if account is None:
        raise NotFound
    public = stored.public
    if public is None:
        raise NoRecords(stored.name)  # The owner has not uploaded the node list yet.
    if request.epsilon is not None:
        loss = PrivacyLoss(request.epsilon, request.query.delta_atto())
    else:
        loss = request.query.loss_reaching(public, request.target or {})
        if not MIN_QUERY_EPSILON_NANO <= loss.epsilon_nano <= MAX_QUERY_EPSILON_NANO:
            raise UnsupportedQuery("no epsilon between 0.000001 and 1000000 reaches this target")
    price = request.query.price(public, loss)
    check_cost(request.query, request.query.cost(public), services.settings.query_memory)
    cap = await run_in_threadpool(services.ledger.cap, stored.id)
    overall = await run_in_threadpool(services.ledger.account, None, caller.id)
    charged = [account, cap] if overall is None else [account, overall, cap]
    return QuoteOut(
        charge=ChargeOut(**loss.as_dict(), neighbouring=public.neighbouring.value),
        steps=[step.as_dict() for step in price.steps],
        accuracy=dict(price.accuracy()),
        affordable=all(one.account.admits(loss) and not one.frozen for one in charged),
    )
