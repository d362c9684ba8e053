"""Queries: ask a query, wait for it, look it up, list the history, cancel it."""

import re
from typing import Annotated, Literal
from uuid import UUID

from fastapi import Body as BodyParameter
from fastapi import Header, Request
from fastapi import Query as QueryParameter
from fastapi.openapi.models import Example
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from accounting.errors import AccountFrozen, BudgetExhausted, CapExhausted
from app.contract.errors import (
    Busy,
    InvalidRequest,
    RateLimited,
    TooCostly,
    UnsupportedQuery,
)
from app.contract.models import Listing
from app.contract.problems import problems
from app.contract.queries import QueryOut
from app.http.access import CurrentCaller, allow
from app.http.declarations import counts_itself, formats
from app.http.dependencies import (
    DEFAULT_LIMIT,
    DatasetFilter,
    PageCursor,
    PageLimit,
    ServicesDep,
    services_of,
)
from app.http.headers import header
from app.http.route import router
from app.queries import FORMATS, QUERY_KINDS, FormatName, example_reply
from app.usecases import queries
from app.usecases.answer_files import FORMS, answer_file
from app.usecases.queries import QueryRequest
from storage import errors as storage

api = router(tags=["queries"])

#: Seconds that a request waits for its answer before the reply 202: by default, and at most.
DEFAULT_WAIT = 20.0
MAX_WAIT = 300.0

_KEY = re.compile(r"[\x20-\x7e]{1,255}")

_IDEMPOTENCY = "1–255 printable ASCII characters: the same key never charges twice."
_PREFER = "`respond-async`, or `wait=N` seconds (20 by default)."
Prefer = Annotated[str | None, Header(description=_PREFER)]


AnswerFormat = Annotated[
    FormatName,
    QueryParameter(description="How an answer is written; all but `json` are for trees."),
]


FileFormat = Annotated[
    Literal["json", "csv", "arrow", "parquet"],
    QueryParameter(description="How the answer is written."),
]


EXAMPLES = {
    name: Example(summary=example.summary, value=example.request)
    for kind in QUERY_KINDS.values()
    for name, example in kind.examples.queries.items()
}


@api.post(
    "/v1/queries",
    status_code=201,
    dependencies=[allow("analyst"), counts_itself],
    responses={
        201: {
            "description": "Answered",
            "content": {"application/json": {"example": example_reply()}},
        },
        202: {"description": "Running; look at Location"},
        **problems(
            storage.NotFound,
            UnsupportedQuery,
            storage.KeyReused,
            storage.StillRunning,
            storage.QueryReleased,
            storage.NoRecords,
            BudgetExhausted,
            CapExhausted,
            AccountFrozen,
            TooCostly,
            RateLimited,
            Busy,
        ),
    },
    # ``app.http.fast_lane`` calls this function with its request and its body only. The function
    # therefore reads these headers itself, and they are declared here.
    openapi_extra={
        "parameters": [
            {"name": name, "in": "header", "description": text, "schema": {"type": "string"}}
            for name, text in (("Idempotency-Key", _IDEMPOTENCY), ("Prefer", _PREFER))
        ]
    },
)
async def submit(
    http: Request, request: QueryRequest = BodyParameter(openapi_examples=EXAMPLES)
) -> Response:
    """Answer one query, charging the analyst's account for its dataset exactly ``epsilon``."""
    key = header(http, b"idempotency-key")
    if key is not None and not _KEY.fullmatch(key):
        raise InvalidRequest.at(
            "header", "Idempotency-Key", type="key", msg="1 to 255 printable ASCII characters"
        )
    services, caller = services_of(http), http.state.caller
    reply = await queries.ask(services, caller, request, key, waiting(header(http, b"prefer")))
    media_type = "application/json" if reply.status < 400 else "application/problem+json"
    return Response(reply.body, reply.status, dict(reply.headers), media_type)


@api.get(
    "/v1/queries",
    dependencies=[allow("analyst", "owner", "auditor")],
    responses=problems(storage.InvalidCursor, Busy, RateLimited),
)
async def history(
    caller: CurrentCaller,
    services: ServicesDep,
    dataset: DatasetFilter = None,
    limit: PageLimit = DEFAULT_LIMIT,
    cursor: PageCursor = None,
) -> Listing[QueryOut]:
    """List queries, newest first: one's own, those on own datasets, or all for auditors."""
    return await queries.history(services, caller, dataset, limit, cursor)


@api.get(
    "/v1/queries/{query_id}",
    dependencies=[
        allow("analyst", "owner", "auditor"),
        formats(**{name: form.media_type for name, form in FORMATS.items()}),
    ],
    responses={
        200: {
            "model": QueryOut,
            "content": {
                form.media_type.partition(";")[0]: {"schema": {"type": "string"}}
                for form in FORMATS.values()
            },
        },
        **problems(storage.NotFound, UnsupportedQuery),
    },
)
async def look_up(
    query_id: str,
    caller: CurrentCaller,
    services: ServicesDep,
    format: AnswerFormat = "json",
    prefer: Prefer = None,
) -> Response:
    """Look up one query. Only its analyst sees the answer, not the owner or auditors.

    The answer of a `tree` query also comes as indented text, in the language of Graphviz, or as a
    drawing.
    """
    wait = None if prefer is None else waiting(prefer)
    view = await queries.look_up(services, caller, query_id, wait)
    if format == "json":
        return Response(view.body(), media_type="application/json")
    # A drawing takes time that grows with the answer, so the event loop does not wait for it.
    text = await run_in_threadpool(view.written_as, format)
    return Response(text, media_type=FORMATS[format].media_type)


@api.get(
    "/v1/queries/{query_id}/answer",
    dependencies=[
        allow("analyst"),
        formats(**{name: form.media_type for name, form in FORMS.items()}),
    ],
    response_class=Response,
    responses={
        200: {
            "description": "The stored answer",
            "content": {
                form.media_type.partition(";")[0]: {
                    "schema": {} if name == "json" else {"type": "string", "format": "binary"}
                }
                for name, form in FORMS.items()
            },
        },
        **problems(storage.NotFound, storage.StillRunning),
    },
)
async def answer_as_file(
    query_id: str, caller: CurrentCaller, services: ServicesDep, format: FileFormat = "json"
) -> Response:
    """Download the answer of an own query for data frames, as CSV, Arrow or Parquet; free."""
    content = await answer_file(services, caller, query_id, format)
    name = f'attachment; filename="{UUID(query_id)}.{format}"'
    headers = {} if format == "json" else {"Content-Disposition": name}
    return Response(content, headers=headers, media_type=FORMS[format].media_type)


@api.delete(
    "/v1/queries/{query_id}",
    status_code=204,
    dependencies=[allow("analyst")],
    responses=problems(storage.NotFound, storage.TooLate),
)
async def cancel(query_id: str, caller: CurrentCaller, services: ServicesDep) -> None:
    """Cancel a query and release its charge, which is possible only before the query begins."""
    await queries.cancel(services, caller, query_id)


def waiting(prefer: str | None) -> float:
    """Seconds to wait by a Prefer header (RFC 7240); unknown preferences are ignored."""
    if prefer is None:
        return DEFAULT_WAIT
    wait = DEFAULT_WAIT
    for preference in prefer.lower().split(","):
        name, _, value = preference.strip().partition("=")
        if name == "respond-async":
            return 0.0
        digits = value.strip().strip('"')
        if name.strip() == "wait" and digits.isascii() and digits.isdecimal() and len(digits) < 10:
            wait = min(float(digits), MAX_WAIT)
    return wait
