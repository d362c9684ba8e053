"""From exception to reply, for a whole application."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import iter_route_contexts
from starlette.exceptions import HTTPException
from starlette.middleware.errors import ServerErrorMiddleware
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import ASGIApp

from app.contract import problems
from app.http.middleware import Observed
from app.http.routing import Route
from app.telemetry.metrics import Metrics


def install(app: FastAPI, metrics: Metrics, routers: Iterable[APIRouter]) -> None:
    """Put the outermost layer and the table of problems around ``app``, which has ``routers``."""
    straight = {
        ("POST", route.path): route.straight
        for router in routers
        for route in router.routes
        if isinstance(route, Route) and route.straight
    }
    build = app.build_middleware_stack

    def observed() -> ASGIApp:
        # In the place of the framework's outermost layer, which answers failures in its own way.
        outermost = build()
        assert isinstance(outermost, ServerErrorMiddleware)
        return Observed(outermost.app, metrics=metrics, straight=straight)

    app.build_middleware_stack = observed  # type: ignore[method-assign]
    for kind in (*problems.PROBLEMS, RequestValidationError):
        app.add_exception_handler(kind, _known)
    app.add_exception_handler(HTTPException, _by_status)


async def _known(request: Request, error: Exception) -> Response:
    reply = problems.response_to(error, request.state.request_id)
    assert reply is not None  # only registered for the types of the table
    return reply


async def _by_status(request: Request, error: Exception) -> Response:
    """What the framework itself refuses: unknown paths, methods and unreadable bodies."""
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
    """Every method of every route at this path: the framework knows those of the first only."""
    scope: dict[str, Any] = {"type": "http", "path": request.url.path, "method": ""}
    methods: set[str] = set()
    for context in iter_route_contexts(request.app.routes):
        route = context.original_route
        match, _ = route.matches(dict(scope))
        if match is not Match.NONE:
            methods |= getattr(route, "methods", None) or set()
    return methods | {"HEAD"} if "GET" in methods else methods
