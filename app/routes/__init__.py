"""One file per resource. A new router is one line in ``ROUTERS``."""

from fastapi import APIRouter

from app.routes import (
    audit,
    budget_requests,
    budgets,
    catalogue,
    certificates,
    datasets,
    health,
    ledger,
    mock,
    notices,
    problem_types,
    queries,
    quotes,
    records,
    sources,
    users,
)

#: Routers are matched in this order, so the one with the most requests comes first.
ROUTERS: tuple[APIRouter, ...] = (
    queries.api,
    health.api,
    users.api,
    datasets.api,
    records.api,
    sources.api,
    mock.api,
    budgets.api,
    budget_requests.api,
    notices.api,
    certificates.api,
    quotes.api,
    ledger.api,
    audit.api,
    catalogue.api,
    problem_types.api,
)
