"""One file a page. A new one is one line in ``VIEWS``, and one in ``app.dashboard.navigation``."""

from fastapi import APIRouter

from app.dashboard.views import budgets, entrance, keys, ledger, queries

VIEWS: tuple[APIRouter, ...] = (
    entrance.pages,
    budgets.pages,
    ledger.pages,
    queries.pages,
    keys.pages,
)
