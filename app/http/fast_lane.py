"""A short path for ``POST /v1/queries``, which skips layers of FastAPI that it does not need.

FastAPI looks up the route, opens exit stacks and resolves dependencies for each request. Only the
rate of queries matters, and their route takes its request and its body alone. FastAPI has the same
route, and the tests of queries run through both paths.
"""

from functools import lru_cache
from inspect import signature
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from app.contract.problems import response_to
from app.http.route import Route

PATH = "/v1/queries"
#: The error for a missing body. FastAPI reports the same, but this middleware replies in its place.
MISSING = {"type": "missing", "loc": ("body",), "msg": "Field required"}
#: The most bodies whose parsed models are cached, and the most bytes of such a body.
BODIES, SHORT = 2048, 4096


class FastLane:
    """ASGI middleware that answers the requests of one route; all others go on to ``app``."""

    def __init__(self, app: ASGIApp, route: Route) -> None:
        if route.methods != {"POST"} or route.access.public:
            raise TypeError(f"{route.path} is no POST route with known callers")
        dependant = route.dependant
        parameters = signature(route.endpoint).parameters
        if len(parameters) != 2 or len(dependant.body_params) != 1 or dependant.dependencies:
            raise TypeError(f"{route.path} takes more than its request and its body")
        self._app, self._route = app, route
        # The cache serves retries, which send the same body again. Danger: if analysts shared it,
        # its speed would reveal the queries of others. So each analyst has entries of their own.
        self._models = lru_cache(maxsize=BODIES)(lambda content, _user: route.validate(content))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (
            scope["type"] != "http"
            or scope["method"] != "POST"
            or scope["path"] != self._route.path
        ):
            await self._app(scope, receive, send)
            return
        scope["route"] = self._route
        request = Request(scope, receive, send)
        try:
            reply = await self._answer(request)
        except Exception as error:
            problem = response_to(error, request.state.request_id)
            if problem is None:
                raise
            reply = problem
        await reply(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        """The reply, after the checks of ``Route`` in the same order."""
        route = self._route
        await route.check_caller(request)
        content = await route.body(request)
        model = await self._model(content, request.state.caller.id)
        route.check_request(request)
        if model is None:
            raise RequestValidationError([MISSING])
        reply: Response = await route.endpoint(request, model)
        return reply

    async def _model(self, content: bytes, user: int) -> Any:
        if content and len(content) <= SHORT:
            return self._models(content, user)
        return await self._route.model(content)
