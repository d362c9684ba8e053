"""The route class that every router uses, and the order of its checks.

Danger: a body may have 16 MB, so it must not be read before the caller is admitted, but FastAPI
reads and parses bodies before any dependency runs. ``Route`` therefore overrides
``get_route_handler``. It checks in the order of the contract (401, 403, 406, 413 and 415, 422),
and passes FastAPI a request whose body is read and validated (``app.http.body``).
"""

import re
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, get_type_hints

from fastapi import APIRouter, Request
from fastapi.datastructures import DefaultPlaceholder
from fastapi.exceptions import RequestValidationError
from fastapi.params import Depends as DependsMarker
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from app.config.settings import MEGABYTE
from app.contract.errors import (
    BodyTooLarge,
    BodyTooSlow,
    Forbidden,
    InvalidRequest,
    NotAcceptable,
    RateLimited,
    RestrictedKey,
    Unauthenticated,
    UnsupportedMediaType,
)
from app.contract.problems import INTERNAL, NOT_FOUND, PROBLEMS, documented
from app.http import strict_json
from app.http.accept import admits
from app.http.access import Access, Caller, Declaration, authenticate
from app.http.body import ReadRequest, read
from app.http.declarations import (
    JSON,
    BodyLimit,
    CountsItself,
    Formats,
    TakesRecords,
    declared,
)
from app.http.dependencies import services_of
from app.http.headers import header
from storage.errors import NotFound

#: The form of every variable part of a path: a name, an id of a key or query, or a problem type.
NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")
#: Bodies of more bytes than this are parsed in a thread, so that the event loop is not blocked.
LONG = 64 * 1024
NO_PARAMETER = "no such parameter here"


class Route(APIRoute):
    """A route that declares its callers. Raises: TypeError for a route that does not."""

    def __init__(
        self,
        path: str,
        endpoint: Callable[..., Any],
        *,
        responses: dict[int | str, dict[str, Any]] | None = None,
        dependencies: Sequence[DependsMarker] | None = None,
        **options: Any,
    ) -> None:
        access = declared(dependencies or (), Access)
        if access is None:
            raise TypeError(f"{path} does not say who may call it")
        self.access = access
        limit = declared(dependencies or (), BodyLimit)
        self.body_limit = limit.limit if limit else MEGABYTE
        self.formats = declared(dependencies or (), Formats)
        self.counts_requests = declared(dependencies or (), CountsItself) is None
        self.takes_records = declared(dependencies or (), TakesRecords) is not None
        # The summary is the docstring's first line. FastAPI's default is the function's name.
        if options.get("summary") is None and endpoint.__doc__:
            options["summary"] = endpoint.__doc__.strip().splitlines()[0].rstrip(".")
        # FastAPI would call every dependency for each request. A ``Declaration`` only states a fact
        # about the route, so it is left out.
        called = [d for d in dependencies or () if not isinstance(d.dependency, Declaration)]
        super().__init__(path, endpoint, responses=responses, dependencies=called, **options)
        if len(self.dependant.body_params) > 1:
            raise TypeError(f"{path} takes its body in more than one parameter")
        self.body_model: TypeAdapter[Any] | None = None
        if self.body_field is not None:
            hints = get_type_hints(endpoint, include_extras=True)
            self.body_model = TypeAdapter[Any](hints[self.body_field.name])
        parameters = frozenset(parameter.alias for parameter in self.dependant.query_params)
        # Pages accept unknown parameters, because old links and forms may still send them.
        self.known_parameters = parameters if path.startswith("/v1/") else None
        self.responses = {**self._own_problems(), **self.responses}
        #: The path up to its first variable. ``matches`` compares it first, because that is fast.
        self._fixed = path.partition("{")[0]

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        # The framework compares a path with the pattern of one route after another, which took a
        # third of the time of a short reply. This comparison of texts rejects most routes in a
        # fraction of it.
        if self._fixed not in scope["path"]:
            return Match.NONE, {}
        return super().matches(scope)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def checked(request: Request) -> Response:
            await self.check_caller(request)
            request = await self.received(request)
            self.check_request(request)
            return await handle(request)

        return checked

    async def check_caller(self, request: Request) -> None:
        """Find the caller and set ``request.state.caller``. Raises: Unauthenticated, Forbidden."""
        if not self.access.public:
            caller = await self.caller(request)
            if not self.access.admits(caller):
                raise RestrictedKey if caller.scope.is_restricted else Forbidden
            request.state.caller = caller

    async def caller(self, request: Request) -> Caller:
        """The caller, by the key or token in the request's header. No cookie is read."""
        return await authenticate(request)

    async def received(self, request: Request) -> Request:
        """The request for FastAPI, with its body read and validated."""
        content = await self.body(request)
        if self.body_model is None:
            return request
        return ReadRequest(request, content, await self.model(content))

    async def body(self, request: Request) -> bytes:
        """The bytes of the body. Raises: NotAcceptable first, then the errors of ``read``."""
        accept = header(request, b"accept")
        media_type = self.formats.media_type(request) if self.formats else self._media_type()
        if accept and not admits(accept, media_type):
            raise NotAcceptable
        return b"" if self.body_model is None else await self.read(request, JSON)

    async def read(self, request: Request, media_type: str) -> bytes:
        """The whole body within the limits of the route and of the service."""
        seconds = services_of(request).settings.body_timeout
        return await read(request, media_type, self.body_limit, seconds)

    async def model(self, content: bytes) -> Any:
        """The validated model of a body; None when there is no body."""
        if not content:
            return None
        if len(content) > LONG:
            return await run_in_threadpool(self.validate, content)
        return self.validate(content)

    def validate(self, content: bytes) -> Any:
        """The validated model of a JSON text. Pydantic reads the text, so its types are JSON's.

        Raises: InvalidRequest, RequestValidationError.
        """
        assert self.body_model is not None
        strict_json.parse(content)
        try:
            return self.body_model.validate_json(content)
        except ValidationError as error:
            raise RequestValidationError(
                [
                    {**e, "loc": ("body", *e["loc"])}
                    for e in error.errors(include_url=False, include_input=False)
                ]
            ) from None

    def check_request(self, request: Request) -> None:
        """The checks after the body. Raises: RequestValidationError, RateLimited, NotFound."""
        if self.known_parameters is not None and request.scope["query_string"]:
            # A misspelt filter would filter nothing and the reply would look right, so the API
            # refuses unknown parameters.
            unknown = sorted(request.query_params.keys() - self.known_parameters)
            if unknown:
                raise RequestValidationError(
                    [
                        {"loc": ("query", name), "type": "extra_forbidden", "msg": NO_PARAMETER}
                        for name in unknown
                    ]
                )
        if self.counts_requests and not self.access.public:
            services_of(request).rate.count(request.state.caller.key_id)
        # No stored name has another form, so such a path does not exist. Some databases would
        # refuse its characters with an error.
        if not all(NAME.fullmatch(str(name)) for name in request.path_params.values()):
            raise NotFound

    def _media_type(self) -> str:
        kind = self.response_class
        if isinstance(kind, DefaultPlaceholder):
            kind = kind.value
        return str(kind.media_type or JSON).partition(";")[0]

    def _own_problems(self) -> dict[int | str, dict[str, Any]]:
        """The problems that this class itself raises, for OpenAPI."""
        kinds = [PROBLEMS[NotAcceptable], INTERNAL]
        if not self.access.public:
            kinds += [PROBLEMS[Unauthenticated], PROBLEMS[Forbidden], PROBLEMS[RateLimited]]
        if self.body_model is not None:
            kinds += [PROBLEMS[kind] for kind in (BodyTooSlow, BodyTooLarge, UnsupportedMediaType)]
        dependant = self.dependant
        if dependant.path_params:
            kinds += [NOT_FOUND]
        # Every route with parameters declares 422, because FastAPI would otherwise document a 422
        # of its own shape.
        parameters = dependant.path_params or dependant.query_params or dependant.header_params
        if self.body_model or parameters or self.known_parameters is not None:
            kinds += [PROBLEMS[InvalidRequest]]
        return documented(kinds)


def router(**options: Any) -> APIRouter:
    """A router whose routes are of this class."""
    return APIRouter(route_class=Route, **options)
