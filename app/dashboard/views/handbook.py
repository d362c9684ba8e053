"""The pages of the handbook: contents, search, and one page of the documents."""

from fastapi import Request
from starlette.responses import Response

from app.dashboard import handbook
from app.dashboard.handbook import HELP
from app.dashboard.pages import pages
from app.dashboard.visit import CurrentVisit
from app.http.access import any_key


@pages.get(HELP, dependencies=[any_key])
def contents(visit: CurrentVisit, request: Request) -> Response:
    """The list of contents, or the sections that a search finds."""
    text = request.query_params.get("q", "")[:100].strip()
    return visit.render(
        "help.html",
        contents=handbook.contents(),
        q=text,
        matches=handbook.search(text),
        most=handbook.MOST_MATCHES,
    )


@pages.get(f"{HELP}/{{page}}", dependencies=[any_key])
def one_page(visit: CurrentVisit, page: str) -> Response:
    """One page of the documents."""
    return visit.render("help_page.html", page=handbook.page(page))
