"""Queries: those that run, those that are over, and one of them with its answer."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from app.dashboard.pages import pages as pages_router
from app.dashboard.pages import to
from app.dashboard.templating import HEADERS, render
from app.http.access import CurrentUser, allow
from app.http.dependencies import PageCursor, ServicesDep
from app.queries import QUERY_KINDS
from app.routes.queries import QueryOut, cancel, history, look_up
from app.usecases.services import Services
from storage.people.users import User

pages = pages_router()

PAGE = 50
NameOrNone = Annotated[str, Query(pattern=r"^[A-Za-z0-9_.-]{0,100}$")]


@dataclass(frozen=True)
class Running:
    """A query under way; seconds since its reservation, and until it may next end."""

    query: QueryOut
    elapsed: float
    expected: float

    @property
    def share(self) -> int:
        """How much of the expected time is over, in percent."""
        return min(100, round(self.elapsed * 100 / self.expected)) if self.expected else 0


@pages.get("/ui/queries", dependencies=[allow("analyst", "owner", "auditor")])
async def queries(
    request: Request,
    user: CurrentUser,
    services: ServicesDep,
    dataset: NameOrNone = "",
    cursor: PageCursor = None,
) -> Response:
    """The history, newest first, with what runs above it."""
    page = await history(user, services, dataset or None, PAGE, cursor)
    running = [] if cursor else await _running(user, services, page.items)
    return render(
        request,
        "queries.html",
        queries=[query for query in page.items if query.status != "running"],
        running=running,
        next=page.next,
        dataset=dataset,
    )


@pages.get("/ui/queries/running", dependencies=[allow("analyst", "owner", "auditor")])
async def running_queries(request: Request, user: CurrentUser, services: ServicesDep) -> Response:
    """What runs now: a part of the page, which is loaded anew when nothing runs any more."""
    page = await history(user, services, None, PAGE, None)
    running = await _running(user, services, page.items)
    if not running:
        return Response(status_code=204, headers={**HEADERS, "HX-Refresh": "true"})
    return render(request, "running.html", running=running)


@pages.get("/ui/queries/{query_id}", dependencies=[allow("analyst", "owner", "auditor")])
async def one_query(
    request: Request, query_id: str, user: CurrentUser, services: ServicesDep
) -> Response:
    """One query: its answer to its analyst, the rest to who may see it."""
    found = await _looked_up(query_id, user, services)
    if "hx-request" in request.headers and found["status"] != "running":
        return Response(status_code=204, headers={**HEADERS, "HX-Refresh": "true"})
    return await run_in_threadpool(_page, request, found)


@pages.post("/ui/queries/{query_id}/cancel", dependencies=[allow("analyst")])
async def cancel_query(query_id: str, user: CurrentUser, services: ServicesDep) -> Response:
    """Give the charge back, if the records are still closed."""
    await cancel(query_id, user, services)
    return to(f"/ui/queries/{query_id}")


def _page(request: Request, found: Any) -> Response:
    answer = found.get("answer")
    kind = QUERY_KINDS[found["query"]["kind"]]
    drawing = None if answer is None else kind.draw(answer)
    return render(request, "query.html", found=found, answer=answer, drawing=drawing)


async def _running(user: User, services: Services, queries: list[QueryOut]) -> list[Running]:
    found = []
    for query in queries:
        if query.status == "running":
            seen = await _looked_up(query.id, user, services)
            if seen["status"] == "running":
                found.append(Running(query, seen["elapsed"], seen["expected"]))
    return found


async def _looked_up(query_id: str, user: User, services: Services) -> Any:
    """What the API says of a query: with its answer only to its analyst."""
    return json.loads(bytes((await look_up(query_id, user, services)).body))
