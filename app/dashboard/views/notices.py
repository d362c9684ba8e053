"""The page of the caller's notices, which the bell on every page counts."""

from starlette.responses import Response

from app.dashboard.pages import pages
from app.dashboard.visit import CurrentVisit
from app.http.access import any_key
from app.usecases import notices


@pages.get("/ui/notices", dependencies=[any_key])
def notices_page(visit: CurrentVisit) -> Response:
    """All notices of the caller, newest first."""
    return visit.render("notices.html", notices=visit.run(notices.page).items)
