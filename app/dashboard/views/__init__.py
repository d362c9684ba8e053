"""One file a page. A new one is one line in ``VIEWS``, and one in ``app.dashboard.navigation``."""

from fastapi import APIRouter

from app.dashboard.views import (
    ask,
    auditing,
    budgets,
    datasets,
    entrance,
    grants,
    health,
    keys,
    ledger,
    queries,
    users,
)

VIEWS: tuple[APIRouter, ...] = (
    entrance.pages,
    budgets.pages,
    ask.pages,
    datasets.pages,
    datasets.uploads,
    grants.pages,
    ledger.pages,
    queries.pages,
    auditing.pages,
    users.pages,
    health.pages,
    keys.pages,
)
