"""Quotes: the price and the accuracy of a query. They use public facts only, so they are free."""

from fastapi import Body as BodyParameter
from fastapi.openapi.models import Example

from app.contract.errors import TooCostly, UnsupportedQuery
from app.contract.problems import problems
from app.contract.queries import QuoteOut
from app.http.access import CurrentCaller, allow
from app.http.dependencies import ServicesDep
from app.http.route import router
from app.queries import QUERY_KINDS
from app.usecases import quotes
from app.usecases.quotes import QuoteRequest
from storage.errors import NoRecords, NotFound

api = router(tags=["queries"])

EXAMPLES = {
    name: Example(summary=example.summary, value=example.request)
    for kind in QUERY_KINDS.values()
    for name, example in kind.examples.quotes.items()
}


@api.post(
    "/v1/quotes",
    dependencies=[allow("analyst")],
    responses=problems(NotFound, UnsupportedQuery, TooCostly, NoRecords),
)
async def quote(
    caller: CurrentCaller,
    services: ServicesDep,
    request: QuoteRequest = BodyParameter(openapi_examples=EXAMPLES),
) -> QuoteOut:
    """Price a query without running it. A quote reads no records and charges nothing."""
    return await quotes.quote(services, caller, request)
