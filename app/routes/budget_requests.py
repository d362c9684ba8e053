"""Requests for budget, and the decisions of owners."""

from typing import Annotated

from fastapi import Body as BodyParam

from accounting.errors import BelowSpent
from app.contract.budget_requests import (
    DECISION_EXAMPLES,
    REQUEST_EXAMPLES,
    BudgetRequestIn,
    BudgetRequestOut,
    DecisionIn,
)
from app.contract.errors import RateLimited
from app.contract.models import Listing
from app.contract.problems import problems
from app.http.access import CurrentCaller, allow
from app.http.dependencies import DEFAULT_LIMIT, PageCursor, PageLimit, ServicesDep
from app.http.route import router
from app.usecases.accounts import budget_requests
from storage.errors import InvalidCursor, NotFound, RequestDecided, RequestOpen

api = router(prefix="/v1", tags=["budgets"])


@api.post(
    "/datasets/{name}/requests",
    status_code=201,
    dependencies=[allow("analyst")],
    responses=problems(NotFound, RequestOpen, RateLimited),
)
def request_budget(
    name: str,
    body: Annotated[BudgetRequestIn, BodyParam(openapi_examples=REQUEST_EXAMPLES)],
    caller: CurrentCaller,
    services: ServicesDep,
) -> BudgetRequestOut:
    """Request an allowance on a dataset that the caller sees, with a purpose for its owner."""
    return budget_requests.make(services, caller, name, body)


@api.get(
    "/datasets/{name}/requests",
    dependencies=[allow("owner", "analyst")],
    responses=problems(NotFound, InvalidCursor),
)
def list_budget_requests(
    name: str,
    caller: CurrentCaller,
    services: ServicesDep,
    limit: PageLimit = DEFAULT_LIMIT,
    cursor: PageCursor = None,
) -> Listing[BudgetRequestOut]:
    """List requests for budget, newest first: all for the owner, their own for an analyst."""
    return budget_requests.page(services, caller, name, limit, cursor)


@api.post(
    "/datasets/{name}/requests/{id}/decision",
    dependencies=[allow("owner")],
    responses=problems(NotFound, RequestDecided, BelowSpent),
)
def decide_budget_request(
    name: str,
    id: str,
    body: Annotated[DecisionIn, BodyParam(openapi_examples=DECISION_EXAMPLES)],
    caller: CurrentCaller,
    services: ServicesDep,
) -> BudgetRequestOut:
    """Grant or refuse a request; a grant sets the allowance in the same transaction."""
    return budget_requests.decide(services, caller, name, id, body)


@api.delete(
    "/datasets/{name}/requests/{id}",
    status_code=204,
    dependencies=[allow("owner", "analyst")],
    responses=problems(NotFound),
)
def erase_budget_request(name: str, id: str, caller: CurrentCaller, services: ServicesDep) -> None:
    """Erase purpose and reason of a request; an open request is withdrawn."""
    budget_requests.erase(services, caller, name, id)
