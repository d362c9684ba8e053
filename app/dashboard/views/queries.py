"""The pages of queries: running queries, the history, and one query with its answer."""

import asyncio
from dataclasses import dataclass
from typing import Annotated, Literal
from uuid import UUID

from fastapi import Query as QueryParameter
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from app.contract.queries import QueryOut
from app.dashboard.forms import NameOrNone
from app.dashboard.pages import pages, signed_file, to
from app.dashboard.templating import HEADERS
from app.dashboard.visit import PAGE, CurrentVisit, Visit
from app.http.access import allow
from app.http.dependencies import PageCursor
from app.queries import QUERY_KINDS
from app.usecases import averages, certificates, queries
from app.usecases.answer_files import FORMS, answer_file
from app.usecases.queries import QueryView

FileFormat = Annotated[Literal["json", "csv", "arrow", "parquet"], QueryParameter()]


@dataclass(frozen=True)
class Running:
    """A running query; ``progress`` holds its elapsed and expected seconds."""

    query: QueryOut
    progress: dict[str, float]

    @property
    def share(self) -> int:
        """The elapsed part of the expected time, in percent."""
        elapsed, expected = self.progress["elapsed"], self.progress["expected"]
        return min(100, round(elapsed * 100 / expected)) if expected else 0


@pages.get("/ui/queries", dependencies=[allow("analyst", "owner", "auditor")])
async def history_page(
    visit: CurrentVisit, dataset: NameOrNone = "", cursor: PageCursor = None
) -> Response:
    """The history of queries, newest first, below the running queries."""
    page = await visit.run(queries.history, dataset or None, PAGE, cursor)
    return visit.render(
        "queries.html",
        queries=[query for query in page.items if query.status != "running"],
        running=[] if cursor else await _running(visit, page.items),
        next=page.next,
        dataset=dataset,
    )


@pages.get("/ui/queries/running", dependencies=[allow("analyst", "owner", "auditor")])
async def running_queries(visit: CurrentVisit) -> Response:
    """The running queries as a part of a page; if none runs, the browser reloads the page."""
    page = await visit.run(queries.history, None, PAGE, None)
    running = await _running(visit, page.items)
    return visit.render("running.html", running=running) if running else _load_anew()


@pages.get("/ui/queries/{query_id}", dependencies=[allow("analyst", "owner", "auditor")])
async def one_query(visit: CurrentVisit, query_id: str) -> Response:
    """One query. Only its analyst sees the answer; other permitted users see the other facts."""
    view = await visit.run(queries.look_up, query_id)
    if visit.is_of_part and view.progress is None:
        return _load_anew()
    return await run_in_threadpool(_page, visit, view)


@pages.get("/ui/queries/{query_id}/answer", dependencies=[allow("analyst")])
async def download_answer(
    visit: CurrentVisit, query_id: str, format: FileFormat = "csv"
) -> Response:
    """Download the answer of an own query as a file for data frames."""
    content = await visit.run(answer_file, query_id, format)
    name = f'attachment; filename="{UUID(query_id)}.{format}"'
    headers = {**HEADERS, "Content-Disposition": name}
    return Response(content, headers=headers, media_type=FORMS[format].media_type)


@pages.get("/ui/queries/{query_id}/certificate", dependencies=[allow("analyst")])
async def download_certificate(visit: CurrentVisit, query_id: str) -> Response:
    """Download the certificate of an own answer."""
    signed = await visit.run(certificates.of_answer, query_id)
    return signed_file(signed, str(UUID(query_id)))


@pages.post("/ui/queries/{query_id}/cancel", dependencies=[allow("analyst")])
async def cancel_query(visit: CurrentVisit, query_id: str) -> Response:
    """Cancel a query that has not begun, which releases its charge."""
    await visit.run(queries.cancel, query_id)
    return to(f"/ui/queries/{UUID(query_id)}")


def _load_anew() -> Response:
    """A reply that makes the script reload the page, because the watched query has ended."""
    return Response(status_code=204, headers={**HEADERS, "HX-Refresh": "true"})


def _page(visit: Visit, view: QueryView) -> Response:
    members = view.members()
    answer = members.get("answer")
    kind = QUERY_KINDS[members["query"]["kind"]]
    drawing = None if answer is None else kind.draw(answer)
    # Answers that earlier releases stored contain no question. The page therefore derives it from
    # the query.
    question = view.query.question
    has_gaussian = answer is not None and members["charge"]["epsilon"] is None
    is_coarse = has_gaussian and members["query"]["kind"] == "table"
    return visit.render(
        "query.html",
        found=members,
        question=question,
        answer=answer,
        drawing=drawing,
        is_coarse=is_coarse,
        obstacle=visit.run(averages.against_another, view) if is_coarse else None,
    )


async def _running(visit: Visit, listed: list[QueryOut]) -> list[Running]:
    running = []
    for query in listed:
        if query.status == "running":
            # A look-up may run on the event loop, which serves others in between.
            await asyncio.sleep(0)
            view = await visit.run(queries.look_up, query.id)
            if view.progress is not None:
                running.append(Running(query, view.progress))
    return running
