"""Turns exceptions into replies, for a whole application."""

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import iter_route_contexts
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match

from app.contract import problems
from app.http.fast_lane import FastLane
from app.http.middleware import Observed
from app.http.route import Route
from app.telemetry.metrics import Metrics


def install(app: FastAPI, metrics: Metrics, fast_lane: Route | None = None) -> None:
    """Install the outermost layers and the table of problems; ``fast_lane`` is its route if any."""
    # The middleware that is added last is the outermost one, so it sees each request first and each
    # reply last.
    if fast_lane is not None:
        app.add_middleware(FastLane, route=fast_lane)
    app.add_middleware(Observed, metrics=metrics)
    for kind in (*problems.PROBLEMS, RequestValidationError):
        app.add_exception_handler(kind, _listed_problem)
    app.add_exception_handler(HTTPException, _by_status)


async def _listed_problem(request: Request, error: Exception) -> Response:
    reply = problems.response_to(error, request.state.request_id)
    # This handler is registered only for the errors in the table of problems, so each has a reply.
    assert reply is not None
    return reply


async def _by_status(request: Request, error: Exception) -> Response:
    """The reply to a refusal of the framework: an unknown path or method, an unreadable body."""
    assert isinstance(error, HTTPException)
    request_id = request.state.request_id
    if error.status_code == 405:
        headers = {"Allow": ", ".join(sorted(_methods(request)))}
        return problems.response(problems.METHOD_NOT_ALLOWED, request_id, headers=headers)
    if error.status_code == 413:
        return problems.response(problems.TOO_LARGE, request_id)
    if 400 <= error.status_code < 500 and error.status_code != 404:
        return problems.response(problems.INVALID_REQUEST, request_id, members={"errors": []})
    kind = problems.NOT_FOUND if error.status_code == 404 else problems.INTERNAL
    return problems.response(kind, request_id)


def _methods(request: Request) -> set[str]:
    """The methods of all routes at this path; the framework gives those of the first route."""
    scope: dict[str, Any] = {"type": "http", "path": request.url.path, "method": ""}
    methods: set[str] = set()
    for context in iter_route_contexts(request.app.routes):
        route = context.original_route
        match, _ = route.matches(dict(scope))
        if match is not Match.NONE:
            methods |= getattr(route, "methods", None) or set()
    return methods | {"HEAD"} if "GET" in methods else methods
