"""The page on which an owner attaches a table of a source to a dataset, and pulls it."""

from pydantic import TypeAdapter
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from app.contract.errors import CrossSite
from app.contract.sources import SourceIn
from app.dashboard.alerts import Alert, alert_of
from app.dashboard.forms import SentForm, read
from app.dashboard.pages import pages, to
from app.dashboard.visit import CurrentVisit, Visit
from app.http.access import allow
from app.http.declarations import takes_records
from app.usecases import sources
from storage.errors import NotFound

ATTACHMENT: TypeAdapter[SourceIn] = TypeAdapter(SourceIn)
#: Separates the source from the table in the value of a choice in the form. No name of a source
#: contains it.
BETWEEN = "/"


@pages.get("/ui/datasets/{name}/source", dependencies=[allow("owner")])
def source_page(visit: CurrentVisit, name: str) -> Response:
    """The sources that are open to the owner, as they are now."""
    return _page(visit, name)


@pages.post("/ui/datasets/{name}/source", dependencies=[allow("owner")])
def attach(visit: CurrentVisit, name: str, form: SentForm) -> Response:
    """Attach the chosen table, or detach the source if none is chosen."""
    source, _, table = form.get("choice").partition(BETWEEN)
    try:
        if source:
            wish = read(ATTACHMENT, {"source": source, "table": table})
            visit.run(sources.attach, name, wish)
        else:
            visit.run(sources.detach, name)
    except NotFound:
        raise
    except Exception as error:
        return _page(visit, name, alert_of(error))
    return to(f"/ui/datasets/{name}/source")


@pages.post("/ui/datasets/{name}/source/pull", dependencies=[allow("owner"), takes_records])
async def pull(visit: CurrentVisit, name: str) -> Response:
    """Pull the table of the source; an error shows the owner where it does not fit."""
    try:
        await visit.run(sources.pull, name)
    except (NotFound, CrossSite):
        raise
    except Exception as error:
        return await run_in_threadpool(_page, visit, name, alert_of(error))
    return to(f"/ui/datasets/{name}")


def _page(visit: Visit, name: str, alert: Alert | None = None) -> Response:
    try:
        attached = visit.run(sources.attached, name)
    except NotFound:
        visit.run(sources.require_own, name)
        attached = None
    listed = visit.run(sources.listing).items
    return visit.render("source.html", name=name, attached=attached, sources=listed, alert=alert)
