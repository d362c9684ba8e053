"""The admin's page of the service itself: can it work, what is it, within which limits."""

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from app.dashboard.pages import pages
from app.dashboard.visit import CurrentVisit
from app.http.access import allow
from app.usecases.health import overview


@pages.get("/ui/health", dependencies=[allow("admin")])
async def health(visit: CurrentVisit) -> Response:
    """The state of the probes in words, versions and limits."""
    return visit.render("health.html", service=await run_in_threadpool(visit.run, overview))
