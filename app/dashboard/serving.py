"""Adds the dashboard to an application: pages, static files, and a page for unknown addresses."""

from fastapi import FastAPI
from starlette.staticfiles import StaticFiles

from app.dashboard.pages import pages, uploads
from app.dashboard.templating import HERE
from app.dashboard.views import (  # noqa: F401 - each file adds its routes to the router
    ask,
    auditing,
    budget_requests,
    budgets,
    datasets,
    entrance,
    grants,
    handbook,
    health,
    keys,
    ledger,
    notices,
    queries,
    registration,
    sources,
    users,
)
from app.http.access import anyone
from storage.errors import NotFound


@pages.get("/ui/{path:path}", dependencies=[anyone])
async def no_such_page() -> None:
    """Refuse every other address below /ui with the error page of NotFound."""
    raise NotFound


def mount(app: FastAPI) -> None:
    # The page for unknown addresses matches every path, so its route must come last.
    app.mount("/ui/static", StaticFiles(directory=HERE / "static"), name="dashboard")
    app.router.routes += [*uploads.routes, *pages.routes]
