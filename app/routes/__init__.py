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

ROUTERS: tuple[APIRouter, ...] = (
    health.api,
    users.api,
    datasets.api,
    records.api,
    budgets.api,
    history.api,
    quotes.api,
    queries.api,
    ledger.api,
    audit.api,
    catalogue.api,
    problem_types.api,
)
