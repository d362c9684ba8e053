"""The route class that every router uses: who may call, then how much, then what.

FastAPI reads and parses a body before any dependency runs, so a stranger could make the service
parse 16 MB. Here the order is that of the contract: 401, 403, 406, 413 and 415, 422, and only
then the route function.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import lru_cache
from inspect import iscoroutinefunction
from typing import Any, get_type_hints

from fastapi import APIRouter, Request
from fastapi.datastructures import DefaultPlaceholder
from fastapi.exceptions import RequestValidationError
from fastapi.params import Depends as DependsMarker
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from app.config.settings import MEGABYTE
from app.contract.errors import (
    BodyTooLarge,
    BodyTooSlow,
    Forbidden,
    InvalidRequest,
    NotAcceptable,
    RateLimited,
    Unauthenticated,
    UnsupportedMediaType,
)
from app.contract.problems import INTERNAL, NOT_FOUND, PROBLEMS, documented, response_to
from app.http import strict_json
from app.http.access import Access, Caller, authenticate
from app.http.dependencies import services_of
from app.http.headers import QuickRequest
from storage.errors import NotFound

JSON = "application/json"
#: What a part of a path may stand for: names, ids of keys and queries, problem types.
NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")
#: Bodies longer than this are parsed off the event loop.
LONG = 64 * 1024
NO_PARAMETER = "no such parameter here"


@dataclass(frozen=True)
class BodyLimit:
    """Declares, as a dependency, how many bytes of body a route reads (1 MB otherwise)."""

    limit: int

    async def __call__(self) -> None:
        """Enforced by the route itself."""


def body_limit(limit: int) -> DependsMarker:
    return DependsMarker(BodyLimit(limit))


@dataclass(frozen=True)
class CountsItself:
    """Declares, as a dependency, that the route counts its requests where its contract says."""

    async def __call__(self) -> None:
        """Enforced by the route itself."""


counts_itself = DependsMarker(CountsItself())


@dataclass(frozen=True)
class Formats:
    """Declares, as a dependency, the media types that ``?format=`` chooses between, beside JSON."""

    media_types: tuple[tuple[str, str], ...]

    async def __call__(self) -> None:
        """Enforced by the route itself."""

    def chosen(self, request: Request) -> str:
        wanted = request.query_params.get("format")
        return dict(self.media_types).get(wanted or "", JSON).partition(";")[0]


def formats(**media_types: str) -> DependsMarker:
    return DependsMarker(Formats(tuple(media_types.items())))


#: What is written as a dependency of a route and enforced by the route itself.
DECLARATIONS = (Access, BodyLimit, CountsItself, Formats)


#: What the framework says of a body that is not there.
MISSING = {"type": "missing", "loc": ("body",), "msg": "Field required"}
#: So many bodies of a route, none longer, are kept as they were understood.
KNOWN, SHORT = 256, 4096


class Route(APIRoute):
    """A route that declares its callers; building one that does not is a TypeError."""

    def __init__(
        self,
        path: str,
        endpoint: Callable[..., Any],
        *,
        responses: dict[int | str, dict[str, Any]] | None = None,
        dependencies: Sequence[DependsMarker] | None = None,
        **options: Any,
    ) -> None:
        access = _declared(dependencies or (), Access)
        if access is None:
            raise TypeError(f"{path} does not say who may call it")
        self.access: Access = access
        limit = _declared(dependencies or (), BodyLimit)
        self.body_limit = limit.limit if limit else MEGABYTE
        self._formats: Formats | None = _declared(dependencies or (), Formats)
        self._counted = _declared(dependencies or (), CountsItself) is None
        # What a person reads in the documentation is a sentence, not the name of a function.
        if options.get("summary") is None and endpoint.__doc__:
            options["summary"] = endpoint.__doc__.strip().splitlines()[0].rstrip(".")
        # Enforced here: FastAPI would solve every one of them anew for each request.
        solved = [d for d in dependencies or () if not isinstance(d.dependency, DECLARATIONS)]
        super().__init__(path, endpoint, responses=responses, dependencies=solved, **options)
        self._body: TypeAdapter[Any] | None = None
        if self.body_field is not None:
            if self._embed_body_fields:
                raise TypeError(f"{path} takes its body in more than one parameter")
            hints = get_type_hints(endpoint, include_extras=True)
            self._body = TypeAdapter[Any](hints[self.body_field.name])
        known = {found.alias for found in self.dependant.query_params}
        # Pages take what old links and forms may still bring.
        self._parameters = frozenset(known) if path.startswith("/v1/") else None
        # What is sent again, as every retry is, is read once. For its sender alone: nobody learns
        # from the time it takes what others have sent.
        self._validated = lru_cache(maxsize=KNOWN)(lambda body, _sender: self._validate(body))
        self._straight = self._asks_for_its_body_alone()
        self.responses = {**self._own_problems(), **self.responses}

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            if not self.access.public:
                caller = await self.caller(request)
                if not self.access.admits(caller):
                    raise Forbidden
                request.state.caller = caller
            await self.received(request)
            if request.scope["query_string"]:
                self._check_parameters(request)
            if self._counted and not self.access.public:
                services_of(request).rate.count(request.state.caller.key_id)
            # Nothing bears another name, and not every database takes every character.
            if not all(NAME.fullmatch(str(name)) for name in request.path_params.values()):
                raise NotFound
            if self._straight:
                value = await request.json()
                if value is None:
                    raise RequestValidationError([MISSING])
                return await self._call(request, value)
            return await handle(request)

        self._guarded = guarded
        return guarded

    @property
    def straight(self) -> ASGIApp | None:
        """The route past the layers of the framework, which find nothing to do for it.

        None for a route that needs them.
        """
        return self._serve if self._straight and self.methods == {"POST"} else None

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["route"] = self
        request = QuickRequest(scope, receive, send)
        try:
            reply = await self._guarded(request)
        except Exception as error:
            problem = response_to(error, request.state.request_id)
            if problem is None:
                raise
            reply = problem
        await reply(scope, receive, send)

    def _check_parameters(self, request: Request) -> None:
        """A misspelt filter would be no filter: of the API no parameter is ignored."""
        if self._parameters is not None and not self._parameters >= request.query_params.keys():
            unknown = sorted(request.query_params.keys() - self._parameters)
            raise RequestValidationError(
                [
                    {"loc": ("query", name), "type": "extra_forbidden", "msg": NO_PARAMETER}
                    for name in unknown
                ]
            )

    def _asks_for_its_body_alone(self) -> bool:
        """Whether the function takes its request and its body, and makes the reply itself.

        FastAPI finds what a function may ask for besides, which takes longer than a stored reply
        takes to look up. Here there is nothing for it to find.
        """
        asked = self.dependant
        if self._body is None or asked.request_param_name is None:
            return False
        if asked.dependencies or asked.path_params or asked.query_params:
            return False
        if asked.header_params or asked.cookie_params:
            return False
        if not iscoroutinefunction(self.endpoint):
            return False
        return get_type_hints(self.endpoint).get("return") is Response

    async def _call(self, request: Request, value: Any) -> Response:
        asked, body = self.dependant, self.body_field
        assert asked.request_param_name is not None
        assert body is not None
        reply: Response = await self.endpoint(
            **{asked.request_param_name: request, body.name: value}
        )
        return reply

    async def caller(self, request: Request) -> Caller:
        """The caller by the key in the request's header alone: no cookie is read."""
        return await authenticate(request)

    async def received(self, request: Request) -> None:
        """Read the body, and put what it says where the framework looks for it."""
        self._check_accept(request)
        if self._body is None:
            return
        body = await self.read(request, JSON)
        value: Any = None
        if body:
            if len(body) > LONG:
                value = await run_in_threadpool(self._validate, body)
            elif len(body) > SHORT or self.access.public:
                value = self._validate(body)
            else:
                value = self._validated(body, request.state.caller.id)
        request._body, request._json = body, value

    def _check_accept(self, request: Request) -> None:
        accept = request.headers.get("accept")
        media_type = self._formats.chosen(request) if self._formats else self._media_type()
        if accept and not _admits(accept, media_type):
            raise NotAcceptable

    def _media_type(self) -> str:
        kind = self.response_class
        if isinstance(kind, DefaultPlaceholder):
            kind = kind.value
        return str(kind.media_type or JSON).partition(";")[0]

    async def read(self, request: Request, wanted: str) -> bytes:
        """The whole body, at most ``body_limit`` bytes of it ever in memory.

        Raises: UnsupportedMediaType for a body that is not of the type ``wanted``.
        """
        declared = request.headers.get("content-length", "")
        if declared.isdecimal() and int(declared[:20]) > self.body_limit:
            raise BodyTooLarge(self.body_limit)
        if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
            raise UnsupportedMediaType("bodies without Content-Encoding")
        chunks, size, more = [], 0, True
        try:
            async with asyncio.timeout(services_of(request).settings.body_timeout):
                while more:
                    message = await request.receive()
                    if message["type"] == "http.disconnect":
                        raise ClientDisconnect
                    chunks.append(message.get("body", b""))
                    more = message.get("more_body", False)
                    # A chunked body has no length in advance, so what arrives is counted too.
                    size += len(chunks[-1])
                    if size > self.body_limit:
                        raise BodyTooLarge(self.body_limit)
        except TimeoutError:
            raise BodyTooSlow from None
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if size and media_type != wanted:
            raise UnsupportedMediaType(wanted)
        return b"".join(chunks)

    def _validate(self, body: bytes) -> Any:
        """The validated model. It is read from the text, where strictness means JSON's types."""
        assert self._body is not None
        strict_json.parse(body)
        try:
            return self._body.validate_json(body)
        except ValidationError as error:
            raise RequestValidationError(
                [
                    {**e, "loc": ("body", *e["loc"])}
                    for e in error.errors(include_url=False, include_input=False)
                ]
            ) from None

    def _own_problems(self) -> dict[int | str, dict[str, Any]]:
        """What this class itself may answer, for OpenAPI."""
        kinds = [PROBLEMS[NotAcceptable], INTERNAL]
        if not self.access.public:
            kinds += [PROBLEMS[Unauthenticated], PROBLEMS[Forbidden], PROBLEMS[RateLimited]]
        if self._body is not None:
            kinds += [PROBLEMS[kind] for kind in (BodyTooSlow, BodyTooLarge, UnsupportedMediaType)]
        dependant = self.dependant
        if dependant.path_params:
            kinds += [NOT_FOUND]
        # FastAPI adds a 422 of its own shape to whatever has a parameter and none declared.
        asked = dependant.path_params or dependant.query_params or dependant.header_params
        if self._body or asked or self._parameters is not None:
            kinds += [PROBLEMS[InvalidRequest]]
        return documented(kinds)


def router(**options: Any) -> APIRouter:
    """A router whose routes are of this class."""
    return APIRouter(route_class=Route, **options)


def _declared(dependencies: Sequence[DependsMarker], kind: type[Any]) -> Any:
    for dependency in dependencies:
        if isinstance(dependency.dependency, kind):
            return dependency.dependency
    return None


def _admits(accept: str, media_type: str) -> bool:
    """Whether an Accept header admits ``media_type`` (RFC 9110, 12.5.1)."""
    main = media_type.partition("/")[0]
    quality: dict[str, float] = {}
    for part in accept.lower().split(","):
        span, *parameters = (piece.strip() for piece in part.split(";"))
        weight = 1.0
        for parameter in parameters:
            name, _, number = parameter.partition("=")
            if name.strip() == "q":
                try:
                    weight = float(number)
                except ValueError:
                    weight = 0.0
        quality[span] = max(weight, quality.get(span, 0.0))
    for span in (media_type, f"{main}/*", "*/*"):
        if span in quality:
            return quality[span] > 0
    return False
