"""Queries: ask a query, wait for it, look it up, list the history, cancel it."""

import json
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from starlette.concurrency import run_in_threadpool

from app.contract.errors import NotAcceptable, UnsupportedQuery
from app.contract.models import Listing
from app.contract.queries import QueryOut
from app.engine.reply import Reply as Reply
from app.engine.requests import QueryRequest as QueryRequest
from app.engine.requests import written
from app.identity.callers import Caller
from app.queries import QUERY_KINDS
from app.usecases import refusals
from app.usecases.questions import Questions
from app.usecases.services import Services
from app.usecases.visibility import listing_scope, require
from storage.database.pages import Page
from storage.errors import NotFound, StillRunning
from storage.queries.history import MINUTE_US, QueryRow

#: What is read on the event loop where the database is SQLite: at most so many queries of so many
#: datasets, with so many bytes of requests and stored replies together. A thread would wait for the
#: interpreter lock longer than such a read takes, about 40 µs a query. Danger: the event loop
#: answers nobody while it reads a long text, parses it or opens the description of a dataset.
SHORT, DATASETS, BYTES = 50, 8, 64 * 1024


@dataclass(frozen=True)
class QueryView:
    """The part of one query that the caller may see.

    ``stored``: the stored reply with the answer, only for the analyst who sent the query.
    ``progress``: only while the query runs, the seconds ``elapsed`` since its reservation, and the
    seconds ``expected`` from there until its deadline. Owners and auditors get both by the minute,
    with the next full minute in place of the deadline.
    """

    query: QueryOut
    stored: bytes | None
    progress: dict[str, float] | None

    def members(self) -> dict[str, Any]:
        """All members that the caller may see."""
        if self.stored is not None:
            stored: dict[str, Any] = json.loads(self.stored)
            return stored
        return {**self.query.model_dump(mode="json"), **(self.progress or {})}

    def body(self) -> bytes:
        """The members as JSON text. A stored reply is returned byte for byte."""
        return written(self.members()).encode() if self.stored is None else self.stored

    def written_as(self, format: str) -> str:
        """The answer in one of the formats of the query's kind.

        Raises: UnsupportedQuery for another format; NotAcceptable if there is no answer that the
        caller may see.
        """
        formats = QUERY_KINDS[self.query.query["kind"]].formats
        if format not in formats:
            raise UnsupportedQuery(
                "answers of this kind are not written in this format",
                supported={"format": ["json", *formats]},
            )
        if self.stored is None:
            raise NotAcceptable
        return formats[format].write(json.loads(self.stored)["answer"])


async def ask(
    services: Services, caller: Caller, request: QueryRequest, key: str | None, wait: float
) -> Reply:
    """Answer one query, or replay the stored answer under the idempotency key ``key``.

    Raises: the refusals of ``app.engine.answering``, which charge nothing; each one is counted.
    """
    require(caller, "analyst")
    try:
        return await services.answering.answer(
            request, caller.user, key, wait, lambda: services.rate.count(caller.key_id)
        )
    except Exception as error:
        refusals.count(services, caller, request.dataset, error)
        raise


async def history(
    services: Services, caller: Caller, dataset: str | None, limit: int, cursor: str | None
) -> Listing[QueryOut]:
    """One page of queries, newest first.

    Analysts see their own queries, owners those on their datasets, and auditors all queries.
    Raises: InvalidCursor; RateLimited, Busy where others read as much.
    """
    require(caller, "analyst", "owner", "auditor")
    scope = listing_scope(caller)
    # Only the queries of one analyst can be read in the order of an index. All others must be
    # sorted, so they need one of the few slots for long reads.
    is_in_order = scope.keys() == {"analyst_id"} and dataset is None
    read = partial(services.queries.page, **scope, dataset=dataset, limit=limit, cursor=cursor)
    may_be_short = is_in_order and limit <= SHORT and services.database.embedded
    if may_be_short and services.queries.bytes_of_page(caller.id, limit, cursor) <= BYTES:
        page = read()
        if len({row.dataset_id for row in page.items}) <= DATASETS:
            return _listing(services, caller, page)
    with nullcontext() if is_in_order else services.reads.slot(caller.id):
        return await run_in_threadpool(lambda: _listing(services, caller, read()))


def _listing(services: Services, caller: Caller, page: Page[QueryRow]) -> Listing[QueryOut]:
    """One page as the caller may see it, each query with its question."""
    questions = Questions(services)
    seen = [_seen(services, caller, row) for row in page.items]
    return Listing(items=[QueryOut.of(row, questions.of(row)) for row in seen], next=page.next)


async def look_up(
    services: Services, caller: Caller, query_id: str, wait: float | None = None
) -> QueryView:
    """One query. If it runs, its analyst waits at most ``wait`` seconds for its end.

    Raises: NotFound.
    """
    require(caller, "analyst", "owner", "auditor")
    id = _id_of(query_id)
    row, view, stored = await _one(services, caller, id)
    # Only callers who may see the answer can wait. For others, the end of the wait would reveal the
    # deadline of the query.
    is_own = _may_see_answer(row, caller)
    if row.status == "running" and wait is not None and is_own:
        await services.answering.wait_for(id, wait)
        row, view, stored = await _one(services, caller, id)
    if row.status != "running":
        return QueryView(view, stored, None)
    elapsed = max(0.0, (row.now_us - row.created_us) / 1e6)
    if is_own:
        return QueryView(view, None, services.answering.progress(id, elapsed))
    return QueryView(view, None, {"elapsed": elapsed, "expected": elapsed + MINUTE_US / 1e6})


#: One query as the caller may see it, its view, and the reply with its answer if there is one.
_Found = tuple[QueryRow, QueryOut, bytes | None]


async def _one(services: Services, caller: Caller, id: UUID) -> _Found:
    """One query that the caller may see.

    Raises: NotFound.
    """
    if services.database.embedded:
        short = services.queries.find_short(id, caller.id, BYTES)
        if short is not None and _may_see_answer(short, caller):
            return _view(services, caller, short)

    def whole() -> _Found:
        row = services.queries.find(id)
        if row is None or not _may_see(row, caller):
            raise NotFound
        return _view(services, caller, row)

    return await run_in_threadpool(whole)


def _view(services: Services, caller: Caller, row: QueryRow) -> _Found:
    """What ``_one`` returns, for a row that the caller may see."""
    seen, stored = _seen(services, caller, row), None
    if seen.status == "answered" and _may_see_answer(seen, caller):
        _, stored = services.queries.reply(seen.id)
    return seen, QueryOut.of(seen, Questions(services).of(seen)), stored


async def released_reply(services: Services, caller: Caller, query_id: str) -> bytes:
    """The stored reply of the caller's own query.

    Raises: NotFound; StillRunning before the release of the answer; NotAcceptable if the query
    failed or was cancelled.
    """
    require(caller, "analyst")
    view = await look_up(services, caller, query_id)
    if view.query.analyst != caller.name:
        raise NotFound
    if view.query.status == "running":
        raise StillRunning(UUID(query_id))
    if view.stored is None:
        raise NotAcceptable
    return view.stored


async def cancel(services: Services, caller: Caller, query_id: str) -> None:
    """Cancel a query that has not begun, and release its charge. Raises: NotFound, TooLate."""
    require(caller, "analyst")
    id = _id_of(query_id)
    row = await run_in_threadpool(services.queries.find, id)
    if row is None or not _is_own(row, caller):
        raise NotFound
    await services.answering.cancel(id)


def _seen(services: Services, caller: Caller, row: QueryRow) -> QueryRow:
    """The row as the caller may see it.

    Danger: owners and auditors pay nothing for what they see, so they must not learn that a query
    missed its deadline. What they see changes at full minutes only.
    """
    if _may_see_answer(row, caller):
        return services.answering.as_seen(row)
    return row.by_the_minute()


def _id_of(query_id: str) -> UUID:
    """The id in this text. Raises: NotFound for a text that cannot be an id."""
    try:
        return UUID(query_id)
    except ValueError:
        raise NotFound from None


def _may_see(row: QueryRow, caller: Caller) -> bool:
    """True for the analyst who sent the query, the owner of its dataset, and auditors."""
    return (
        _may_see_answer(row, caller)
        or (row.owner_id == caller.id and "owner" in caller.roles)
        or "auditor" in caller.roles
    )


def _may_see_answer(row: QueryRow, caller: Caller) -> bool:
    """True if the caller sent the query and still has the role of analyst."""
    return _is_own(row, caller) and "analyst" in caller.roles


def _is_own(row: QueryRow, caller: Caller) -> bool:
    """True if the caller sent the query, about a dataset that the caller's key may query."""
    return row.analyst_id == caller.id and caller.scope.admits(row.dataset_id)
