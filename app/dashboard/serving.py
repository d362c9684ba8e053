"""Putting the dashboard into an application: its pages, its files, and a page for what is not."""

from __future__ import annotations

from fastapi import FastAPI
from starlette.staticfiles import StaticFiles

from app.dashboard.pages import pages
from app.dashboard.templating import HERE
from app.dashboard.views import VIEWS
from app.http.access import anyone
from storage.errors import NotFound

nowhere = pages()


@nowhere.get("/ui/{path:path}", dependencies=[anyone])
async def no_such_page() -> None:
    """A page that says so, for every other address below /ui."""
    raise NotFound


def mount(app: FastAPI) -> None:
    for view in VIEWS:
        app.include_router(view)
    app.mount("/ui/static", StaticFiles(directory=HERE / "static"), name="dashboard")
    app.include_router(nowhere)
