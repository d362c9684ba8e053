"""One file a page. A new one is one line in ``VIEWS``, and one in ``app.dashboard.navigation``."""

from fastapi import APIRouter

from app.dashboard.views import ask, budgets, entrance, keys, ledger, queries

VIEWS: tuple[APIRouter, ...] = (
    entrance.pages,
    budgets.pages,
    ask.pages,
    ledger.pages,
    queries.pages,
    keys.pages,
)
