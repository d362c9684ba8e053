"""One file a resource. A new router is one line in ``ROUTERS``."""

from fastapi import APIRouter

from app.routes import (
    audit,
    budgets,
    catalogue,
    datasets,
    health,
    history,
    ledger,
    problem_types,
    queries,
    quotes,
    records,
    users,
)

#: Tried in this order, so what is asked most comes first.
ROUTERS: tuple[APIRouter, ...] = (
    queries.api,
    health.api,
    users.api,
    datasets.api,
    records.api,
    budgets.api,
    history.api,
    quotes.api,
    ledger.api,
    audit.api,
    catalogue.api,
    problem_types.api,
)
