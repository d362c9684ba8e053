"""The pages of datasets: their public facts, and for their owners registration and uploads."""

from collections.abc import Awaitable, Callable

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from app.contract.datasets import DatasetName
from app.contract.errors import CrossSite
from app.dashboard.alerts import Alert, alert_of
from app.dashboard.files import SentFile
from app.dashboard.forms import NameOrNone
from app.dashboard.pages import pages, signed_file, to, uploads
from app.dashboard.templating import HEADERS
from app.dashboard.visit import PAGE, CurrentVisit, Visit
from app.http.access import allow
from app.http.declarations import takes_records
from app.http.dependencies import PageCursor
from app.usecases import certificates, datasets, mock, records
from storage.errors import NotFound

#: The number of records in a made-up file for download: enough to write a program against.
MOCK_ROWS = 100


@pages.get("/ui/datasets", dependencies=[allow("owner", "analyst", "auditor")])
def datasets_page(visit: CurrentVisit, cursor: PageCursor = None, q: NameOrNone = "") -> Response:
    """The datasets that the caller may see, newest first, or those whose names contain a text."""
    page = visit.run(datasets.page, PAGE, cursor, q)
    return visit.render("datasets.html", datasets=page.items, next=page.next, search=q)


@pages.get("/ui/datasets/{name}", dependencies=[allow("owner", "analyst", "auditor")])
def dataset(visit: CurrentVisit, name: str) -> Response:
    """One dataset: its description and version; its owner also sees the state of uploads."""
    return _page(visit, name)


@pages.get("/ui/datasets/{name}/mock.csv", dependencies=[allow("owner", "analyst", "auditor")])
def mock_file(visit: CurrentVisit, name: str) -> Response:
    """A file of made-up records, drawn from the public description alone."""
    file = visit.run(mock.mock, name, MOCK_ROWS, "csv")
    named = {"Content-Disposition": f'attachment; filename="{name}-mock.csv"'}
    return Response(file, media_type="text/csv; charset=utf-8", headers={**HEADERS, **named})


@pages.get("/ui/datasets/{name}/certificate", dependencies=[allow("owner", "auditor")])
def download_certificate(visit: CurrentVisit, name: str) -> Response:
    """Download the certificate of a dataset, which shows no released value."""
    return signed_file(visit.run(certificates.of_dataset, name), name)


@pages.post("/ui/datasets/{name}/withdraw", dependencies=[allow("owner"), takes_records])
def withdraw(visit: CurrentVisit, name: str) -> Response:
    """End all queries of the records; the ledger and stored answers stay."""
    visit.run(records.withdraw, name)
    return to(f"/ui/datasets/{name}")


@uploads.post("/ui/datasets/{name}/records", dependencies=[allow("owner"), takes_records])
async def upload(visit: CurrentVisit, name: str) -> Response:
    """Receive records; an error shows the owner where they do not match the description."""
    return await _take(visit, name, records.take_records)


@uploads.post("/ui/datasets/{name}/nodes", dependencies=[allow("owner"), takes_records])
async def upload_node_list(visit: CurrentVisit, name: str) -> Response:
    """Receive the names of a graph's nodes."""
    return await _take(visit, name, records.take_nodes)


async def _take(visit: Visit, name: str, take: Callable[..., Awaitable[object]]) -> Response:
    try:
        sent = await SentFile(visit.request).open()
        await visit.run(take, name, sent.delivery())
    except (NotFound, CrossSite):
        raise
    except Exception as error:
        return await run_in_threadpool(_page, visit, name, alert_of(error))
    return to(f"/ui/datasets/{name}")


def _page(visit: Visit, name: str, alert: Alert | None = None) -> Response:
    details = visit.run(datasets.describe, name)
    if isinstance(details.view, DatasetName):
        raise NotFound  # An admin may see only the name of this dataset, so there is no page.
    settings = visit.services.settings
    return visit.render(
        "dataset.html",
        dataset=details.view.model_dump(mode="json", exclude_none=True),
        is_owner=details.is_owner,
        may_certify=details.may_certify,
        versions=details.view.versions or [],
        limits={"upload": settings.upload_limit // 2**20, "work": settings.preparation_limit},
        alert=alert,
    )
