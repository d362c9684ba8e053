"""The admin's page about the service: its health, its versions and its limits."""

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from app.dashboard.pages import pages
from app.dashboard.visit import CurrentVisit
from app.http.access import allow
from app.usecases.health import overview


@pages.get("/ui/health", dependencies=[allow("admin")])
async def health(visit: CurrentVisit) -> Response:
    """The results of the health checks in words, with the versions and limits of the service."""
    return visit.render("health.html", service=await run_in_threadpool(visit.run, overview))
