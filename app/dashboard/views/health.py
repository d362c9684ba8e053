"""The admin's page of the service itself: can it work, what is it, within which limits."""

from __future__ import annotations

from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from app.dashboard.pages import pages as pages_router
from app.dashboard.templating import render
from app.http.access import CurrentCaller, allow
from app.http.dependencies import ServicesDep
from app.usecases.health import overview

pages = pages_router()


@pages.get("/ui/health", dependencies=[allow("admin")])
async def health(request: Request, caller: CurrentCaller, services: ServicesDep) -> Response:
    """The state of the probes in words, versions and limits."""
    service = await run_in_threadpool(overview, services, caller)
    return render(request, "health.html", service=service)
