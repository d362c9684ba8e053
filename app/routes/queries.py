"""Asking, waiting for, looking up and cancelling queries."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import Body as BodyParameter
from fastapi import Header, Request
from fastapi import Query as QueryParameter
from fastapi.openapi.models import Example
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from accounting.errors import AccountFrozen, BudgetExhausted, CapExhausted
from app.contract.errors import Busy, InvalidRequest, NotAcceptable, RateLimited
from app.contract.models import Listing, Reply
from app.contract.problems import problem_type, problems
from app.contract.times import moment
from app.engine.requests import QueryRequest, written
from app.http.access import CurrentUser, allow
from app.http.dependencies import (
    DEFAULT_LIMIT,
    DatasetFilter,
    PageCursor,
    PageLimit,
    ServicesDep,
    services_of,
)
from app.http.routing import counts_itself, formats, router
from app.queries import FORMATS, QUERY_KINDS, FormatName, example_reply
from app.usecases.services import Services
from mechanisms.model.errors import UnsupportedQuery
from storage.errors import (
    InvalidCursor,
    KeyReused,
    NoRecords,
    NotFound,
    QueryReleased,
    StillRunning,
    TooLate,
)
from storage.people.users import User
from storage.queries.history import QueryRow

api = router(tags=["queries"])

#: Seconds a client waits for an answer unless it says otherwise, and the longest it may.
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


EXAMPLES = {
    name: Example(summary=example.summary, value=example.request)
    for kind in QUERY_KINDS.values()
    for name, example in kind.examples.queries.items()
}


class QueryOut(Reply):
    """One query of the history; times are the reservation and the release instant."""

    id: str
    status: str
    analyst: str
    dataset: str
    dataset_version: int
    query: dict[str, Any]
    charge: dict[str, str]
    created: datetime
    released: datetime | None


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
            NotFound,
            UnsupportedQuery,
            KeyReused,
            StillRunning,
            QueryReleased,
            NoRecords,
            BudgetExhausted,
            CapExhausted,
            AccountFrozen,
            RateLimited,
            Busy,
        ),
    },
    # Read by the function itself, which so asks for its body alone (``app.http.routing``).
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
    key, prefer = (http.headers.get(name) for name in ("Idempotency-Key", "Prefer"))
    return await ask(http, http.state.user, services_of(http), request, key, prefer)


async def ask(
    http: Request,
    user: User,
    services: Services,
    request: QueryRequest,
    idempotency_key: str | None,
    prefer: str | None,
) -> Response:
    """The reply to one query of ``user``, who sent it with the key that ``http`` came with."""
    if idempotency_key is not None and not _KEY.fullmatch(idempotency_key):
        raise InvalidRequest.at(
            "header", "Idempotency-Key", type="key", msg="1 to 255 printable ASCII characters"
        )
    key_id = http.state.key_id
    try:
        reply = await services.answering.answer(
            request, user, idempotency_key, waiting(prefer), lambda: services.rate.count(key_id)
        )
    except Exception as error:
        count_refusal(services, user, request.dataset, error)
        raise
    media_type = "application/json" if reply.status < 400 else "application/problem+json"
    return Response(reply.body, reply.status, dict(reply.headers), media_type)


@api.get(
    "/v1/queries",
    dependencies=[allow("analyst", "owner", "auditor")],
    responses=problems(InvalidCursor),
)
async def history(
    user: CurrentUser,
    services: ServicesDep,
    dataset: DatasetFilter = None,
    limit: PageLimit = DEFAULT_LIMIT,
    cursor: PageCursor = None,
) -> Listing[QueryOut]:
    """Queries, newest first: one's own; for owners those on their datasets; all for auditors."""
    scope: dict[str, int] = {}
    if "auditor" not in user.roles:
        if "analyst" in user.roles:
            scope["analyst_id"] = user.id
        if "owner" in user.roles:
            scope["owner_id"] = user.id
    page = await run_in_threadpool(
        services.queries.page, **scope, dataset=dataset, limit=limit, cursor=cursor
    )
    items = [shown(services.answering.as_seen(row)) for row in page.items]
    return Listing(items=items, next=page.next)


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
        **problems(NotFound, UnsupportedQuery),
    },
)
async def look_up(
    query_id: str,
    user: CurrentUser,
    services: ServicesDep,
    format: AnswerFormat = "json",
    prefer: Prefer = None,
) -> Response:
    """One query; its analyst sees the answer, the dataset's owner and auditors the rest.

    An answered `tree` query is also written for people, for its analyst alone: as indented text,
    in the language of Graphviz, or as a drawing.
    """
    id = known_form(query_id)
    row = await run_in_threadpool(services.queries.find, id)
    if row is None or not may_see(row, user):
        raise NotFound
    row = services.answering.as_seen(row)
    if row.status == "running" and prefer is not None:
        await services.answering.wait_for(id, waiting(prefer))
        found = await run_in_threadpool(services.queries.find, id)
        assert found is not None
        row = services.answering.as_seen(found)
    if format != "json":
        return rendered(row, user, format)
    if row.status == "answered" and is_own(row, user) and row.answer is not None:
        return Response(row.answer, media_type="application/json")
    body = shown(row).model_dump(mode="json")
    if row.status == "running":
        now = await run_in_threadpool(services.database.now_us)
        body |= services.answering.progress(max(0.0, (now - row.created_us) / 1e6))
    return Response(written(body), media_type="application/json")


@api.delete(
    "/v1/queries/{query_id}",
    status_code=204,
    dependencies=[allow("analyst")],
    responses=problems(NotFound, TooLate),
)
async def cancel(query_id: str, user: CurrentUser, services: ServicesDep) -> None:
    """Cancel before the query has begun: the charge goes back; later it is too late."""
    id = known_form(query_id)
    row = await run_in_threadpool(services.queries.find, id)
    if row is None or row.analyst_id != user.id:
        raise NotFound
    await services.answering.cancel(id)


#: Refusals that come after the dataset was found to be the caller's to see.
AFTER_VISIBLE = (
    UnsupportedQuery,
    NoRecords,
    RateLimited,
    Busy,
    BudgetExhausted,
    CapExhausted,
    AccountFrozen,
)


def count_refusal(services: Services, user: User, dataset: str, error: Exception) -> None:
    """Count what the table of problems knows, beside the ledger."""
    kind = problem_type(error)
    if kind is not None:
        name = dataset if isinstance(error, AFTER_VISIBLE) else ""
        services.refusals.count(user.id, name, kind.slug)


def rendered(row: QueryRow, user: User, format: str) -> Response:
    """An answer in a format of its kind; NotAcceptable where the caller has no answer to see."""
    formats = QUERY_KINDS[row.request["query"]["kind"]].formats
    if format not in formats:
        raise UnsupportedQuery(
            "answers of this kind are not written in this format",
            supported={"format": ["json", *formats]},
        )
    if row.status != "answered" or not is_own(row, user) or row.answer is None:
        raise NotAcceptable
    form = formats[format]
    return Response(form.write(json.loads(row.answer)["answer"]), media_type=form.media_type)


def known_form(query_id: str) -> UUID:
    """What cannot be an id is an id that does not exist."""
    try:
        return UUID(query_id)
    except ValueError:
        raise NotFound from None


def may_see(row: QueryRow, user: User) -> bool:
    """Its analyst, the owner of its dataset, and auditors."""
    return (
        is_own(row, user)
        or (row.owner_id == user.id and "owner" in user.roles)
        or "auditor" in user.roles
    )


def is_own(row: QueryRow, user: User) -> bool:
    """Whether it may be answered to the caller: who is an analyst no more sees no answers."""
    return row.analyst_id == user.id and "analyst" in user.roles


def shown(row: QueryRow) -> QueryOut:
    return QueryOut(
        id=str(row.id),
        status=row.status,
        analyst=row.analyst,
        dataset=row.dataset,
        dataset_version=row.version,
        query=row.request["query"],
        charge={**row.charge.as_dict(), "neighbouring": row.neighbouring},
        created=moment(row.created_us),
        released=None if row.release_us is None else moment(row.release_us),
    )


def waiting(prefer: str | None) -> float:
    """Seconds to wait by a Prefer header (RFC 7240); what it does not know it ignores."""
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
