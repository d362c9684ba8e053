"""Allowances of analysts, and the charges against them."""

from __future__ import annotations

from typing import Annotated

from fastapi import Body as BodyParam
from fastapi import Header, Query, Response

from accounting.errors import BelowSpent
from app.contract.budgets import (
    ALLOWANCE_EXAMPLES,
    COMPOSITION_EXAMPLES,
    AccountBalance,
    AllowanceIn,
    AnalystAccount,
    By,
    CompositionIn,
    DatasetBudgets,
    OwnBudgets,
    Point,
)
from app.contract.errors import Busy, RateLimited
from app.contract.models import Listing
from app.contract.problems import problems
from app.http.access import CurrentCaller, allow
from app.http.dependencies import ServicesDep
from app.http.route import router
from app.usecases.accounts import budgets
from storage.errors import NotFound, PreconditionFailed

api = router(prefix="/v1", tags=["budgets"])


@api.put(
    "/datasets/{name}/budgets/{user}",
    dependencies=[allow("owner")],
    responses=problems(NotFound, BelowSpent, PreconditionFailed),
)
def set_allowance(
    name: str,
    user: str,
    wish: Annotated[AllowanceIn, BodyParam(openapi_examples=ALLOWANCE_EXAMPLES)],
    caller: CurrentCaller,
    services: ServicesDep,
    response: Response,
    if_match: Annotated[str | None, Header(max_length=256)] = None,
) -> AnalystAccount:
    """Set an analyst's allowance on the dataset; never below what is already charged."""
    account = budgets.grant(services, caller, name, user, wish, if_match)
    response.headers["ETag"] = account.etag
    return account


@api.put(
    "/datasets/{name}/cap",
    dependencies=[allow("owner")],
    responses=problems(NotFound, BelowSpent),
)
def set_composition_delta(
    name: str,
    change: Annotated[CompositionIn, BodyParam(openapi_examples=COMPOSITION_EXAMPLES)],
    caller: CurrentCaller,
    services: ServicesDep,
) -> AccountBalance:
    """Set the composition_delta of the dataset's cap; its epsilon and delta never change."""
    return budgets.promise_cap(services, caller, name, change)


@api.get(
    "/datasets/{name}/budgets",
    dependencies=[allow("owner", "auditor")],
    responses=problems(NotFound),
)
def show_budgets(name: str, caller: CurrentCaller, services: ServicesDep) -> DatasetBudgets:
    """Show every account of the dataset, their joint privacy loss, and the cap over all."""
    return budgets.of_dataset(services, caller, name)


@api.get("/budgets", dependencies=[allow("analyst")])
def own_budgets(caller: CurrentCaller, services: ServicesDep) -> OwnBudgets:
    """Show the caller's accounts, one per dataset, and the limit over all datasets."""
    return budgets.own(services, caller)


@api.get(
    "/budgets/{dataset}/history",
    dependencies=[allow("analyst")],
    responses=problems(NotFound, Busy, RateLimited),
)
def budget_history(
    dataset: str,
    caller: CurrentCaller,
    services: ServicesDep,
    by: Annotated[By, Query(description="What one point stands for.")] = "day",
) -> Listing[Point]:
    """Show charges on one dataset, latest day first or by name; cancelled ones left out."""
    return budgets.history(services, caller, dataset, by)
