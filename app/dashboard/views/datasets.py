"""Datasets: what is public about them, and for their owner their records and uploads."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from fastapi import Query, Request
from pydantic import TypeAdapter
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from app.contract.datasets import DatasetName
from app.contract.descriptions import REGISTRATIONS, Registration
from app.contract.errors import CrossSite
from app.dashboard.alerts import Alert, alert_of
from app.dashboard.files import SentFile
from app.dashboard.forms import SentForm, read_json
from app.dashboard.pages import UploadPage, to
from app.dashboard.pages import pages as pages_router
from app.dashboard.templating import render
from app.http.access import Caller, CurrentCaller, allow
from app.http.dependencies import PageCursor, ServicesDep
from app.usecases import datasets, records
from app.usecases.services import Services
from storage.errors import NotFound

pages = pages_router()
uploads = pages_router(route_class=UploadPage)

PAGE = 50
REGISTRATION: TypeAdapter[Any] = TypeAdapter(Registration)
Kind = Annotated[Literal["graph", "table", "prefix"], Query()]


@pages.get("/ui/datasets", dependencies=[allow("owner", "analyst", "auditor")])
def datasets_page(
    request: Request, caller: CurrentCaller, services: ServicesDep, cursor: PageCursor = None
) -> Response:
    """The datasets that the caller may see, newest first."""
    page = datasets.page(services, caller, PAGE, cursor)
    return render(request, "datasets.html", datasets=page.items, next=page.next)


@pages.get("/ui/register", dependencies=[allow("owner")])
def registration(request: Request, kind: Kind = "table") -> Response:
    """The form for the public description, filled with an example."""
    text = json.dumps(REGISTRATIONS[kind]["value"], indent=2, ensure_ascii=False)
    return render(request, "register.html", kind=kind, text=text, alert=None)


@pages.post("/ui/register", dependencies=[allow("owner")])
def register_one(
    request: Request, caller: CurrentCaller, services: ServicesDep, form: SentForm
) -> Response:
    """Register what is written; it is fixed from then on."""
    text = form.get("description")
    try:
        described = read_json(REGISTRATION, text)
        datasets.register(services, caller, described)
    except Exception as error:
        alert = alert_of(error)
        return render(request, "register.html", alert.status, kind="", text=text, alert=alert)
    return to(f"/ui/datasets/{described.name}")


@pages.get("/ui/datasets/{name}", dependencies=[allow("owner", "analyst", "auditor")])
def dataset(request: Request, name: str, caller: CurrentCaller, services: ServicesDep) -> Response:
    """One dataset: its description, its version, and to its owner how the last upload went."""
    return _page(request, name, caller, services)


@pages.post("/ui/datasets/{name}/withdraw", dependencies=[allow("owner")])
def withdraw(name: str, caller: CurrentCaller, services: ServicesDep) -> Response:
    """No more queries of its records; ledger and answers stay."""
    records.withdraw(services, caller, name)
    return to(f"/ui/datasets/{name}")


@uploads.post("/ui/datasets/{name}/records", dependencies=[allow("owner")])
async def upload(
    request: Request, name: str, caller: CurrentCaller, services: ServicesDep
) -> Response:
    """Take records; a refusal says to their owner where they do not fit the description."""
    try:
        sent = await SentFile(request).open()
        await records.take_records(services, caller, name, sent.delivery())
    except Exception as error:
        return await _refused(request, name, caller, services, error)
    return to(f"/ui/datasets/{name}")


@uploads.post("/ui/datasets/{name}/nodes", dependencies=[allow("owner")])
async def upload_node_list(
    request: Request, name: str, caller: CurrentCaller, services: ServicesDep
) -> Response:
    """Take the names of a graph's nodes."""
    try:
        sent = await SentFile(request).open()
        await records.take_nodes(services, caller, name, sent.delivery())
    except Exception as error:
        return await _refused(request, name, caller, services, error)
    return to(f"/ui/datasets/{name}")


async def _refused(
    request: Request, name: str, caller: Caller, services: Services, error: Exception
) -> Response:
    if isinstance(error, NotFound | CrossSite):
        raise error
    alert = alert_of(error)
    return await run_in_threadpool(_page, request, name, caller, services, alert)


def _page(
    request: Request, name: str, caller: Caller, services: Services, alert: Alert | None = None
) -> Response:
    details = datasets.describe(services, caller, name)
    if isinstance(details.view, DatasetName):
        raise NotFound  # there is no page of a dataset of which an admin sees the name alone
    return render(
        request,
        "dataset.html",
        alert.status if alert else 200,
        dataset=details.view.model_dump(mode="json", exclude_none=True),
        is_owner=details.is_owner,
        versions=details.view.versions or [],
        limits={
            "upload": services.settings.upload_limit // 2**20,
            "work": services.settings.preparation_limit,
        },
        alert=alert,
    )
