"""The admin's page of the service itself: can it work, what is it, within which limits."""

from __future__ import annotations

import json

from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from app.dashboard.pages import pages as pages_router
from app.dashboard.templating import render
from app.http.access import allow
from app.http.dependencies import ServicesDep
from app.routes.catalogue import catalogue
from app.routes.health import service_can_work, versions

pages = pages_router()


@pages.get("/ui/health", dependencies=[allow("admin")])
async def health(request: Request, services: ServicesDep) -> Response:
    """What the probes say, in words."""
    state = await run_in_threadpool(service_can_work, services)
    published = await run_in_threadpool(catalogue, services)
    settings = services.settings
    return render(
        request,
        "health.html",
        ready=json.loads(bytes(state.body))["status"] == "ready",
        versions=await versions(),
        database="SQLite" if services.database.embedded else "PostgreSQL",
        limits={
            **published.limits,
            "queries of one analyst at once": settings.in_flight_per_analyst,
            "queries of all at once": settings.in_flight_total,
            "requests of one key": settings.rate_limit or "not limited",
            "seconds of a session": f"{settings.session_lifetime:g}",
        },
        metrics=settings.metrics_token is not None,
    )
