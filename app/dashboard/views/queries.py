"""Queries: those that run, those that are over, and one of them with its answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from app.contract.queries import QueryOut
from app.dashboard.pages import pages as pages_router
from app.dashboard.pages import to
from app.dashboard.templating import HEADERS, render
from app.http.access import Caller, CurrentCaller, allow
from app.http.dependencies import PageCursor, ServicesDep
from app.queries import QUERY_KINDS
from app.usecases import queries
from app.usecases.queries import QueryView
from app.usecases.services import Services

pages = pages_router()

PAGE = 50
NameOrNone = Annotated[str, Query(pattern=r"^[A-Za-z0-9_.-]{0,100}$")]


@dataclass(frozen=True)
class Running:
    """A running query."""

    query: QueryOut
    progress: dict[str, float]

    @property
    def share(self) -> int:
        """How much of the expected time is over, in percent."""
        elapsed, expected = self.progress["elapsed"], self.progress["expected"]
        return min(100, round(elapsed * 100 / expected)) if expected else 0


@pages.get("/ui/queries", dependencies=[allow("analyst", "owner", "auditor")])
async def history_page(
    request: Request,
    caller: CurrentCaller,
    services: ServicesDep,
    dataset: NameOrNone = "",
    cursor: PageCursor = None,
) -> Response:
    """The history, newest first, with what runs above it."""
    page = await queries.history(services, caller, dataset or None, PAGE, cursor)
    running = [] if cursor else await _running(caller, services, page.items)
    return render(
        request,
        "queries.html",
        queries=[query for query in page.items if query.status != "running"],
        running=running,
        next=page.next,
        dataset=dataset,
    )


@pages.get("/ui/queries/running", dependencies=[allow("analyst", "owner", "auditor")])
async def running_queries(
    request: Request, caller: CurrentCaller, services: ServicesDep
) -> Response:
    """What runs now: a part of the page, which is loaded anew when nothing runs any more."""
    page = await queries.history(services, caller, None, PAGE, None)
    running = await _running(caller, services, page.items)
    if not running:
        return Response(status_code=204, headers={**HEADERS, "HX-Refresh": "true"})
    return render(request, "running.html", running=running)


@pages.get("/ui/queries/{query_id}", dependencies=[allow("analyst", "owner", "auditor")])
async def one_query(
    request: Request, query_id: str, caller: CurrentCaller, services: ServicesDep
) -> Response:
    """One query: its answer to its analyst, the rest to who may see it."""
    view = await queries.look_up(services, caller, query_id)
    if "hx-request" in request.headers and view.progress is None:
        return Response(status_code=204, headers={**HEADERS, "HX-Refresh": "true"})
    return await run_in_threadpool(_page, request, view)


@pages.post("/ui/queries/{query_id}/cancel", dependencies=[allow("analyst")])
async def cancel_query(query_id: str, caller: CurrentCaller, services: ServicesDep) -> Response:
    """Give the charge back, if the query has not begun."""
    await queries.cancel(services, caller, query_id)
    return to(f"/ui/queries/{query_id}")


def _page(request: Request, view: QueryView) -> Response:
    members = view.members()
    answer = members.get("answer")
    kind = QUERY_KINDS[members["query"]["kind"]]
    drawing = None if answer is None else kind.draw(answer)
    return render(request, "query.html", found=members, answer=answer, drawing=drawing)


async def _running(caller: Caller, services: Services, listed: list[QueryOut]) -> list[Running]:
    running = []
    for query in listed:
        if query.status == "running":
            view = await queries.look_up(services, caller, query.id)
            if view.progress is not None:
                running.append(Running(query, view.progress))
    return running
