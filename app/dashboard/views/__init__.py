"""One file a page. A new one is one line in ``VIEWS``, and one in ``app.dashboard.navigation``."""

from fastapi import APIRouter

from app.dashboard.views import entrance, keys

VIEWS: tuple[APIRouter, ...] = (
    entrance.pages,
    keys.pages,
)
