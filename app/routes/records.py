"""Where a dataset's node list and records come in: streamed to disk, never whole in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import Any, Literal

from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response

from app.config.settings import Settings
from app.contract import record_forms
from app.contract.errors import (
    BodyTooLarge,
    BodyTooSlow,
    FieldError,
    InvalidRequest,
    NodesMissing,
    UnsupportedMediaType,
)
from app.contract.models import Reply
from app.contract.problems import problems
from app.engine.uploads import Published
from app.http.access import CurrentUser, allow
from app.http.dependencies import ServicesDep
from app.http.route import router
from app.usecases.services import Services
from app.usecases.visibility import owned
from mechanisms.model.domains import GraphDomain
from storage.catalogue.datasets import StoredDataset
from storage.errors import (
    AlreadyExists,
    InvalidRecords,
    NoRecords,
    NotFound,
    TooLarge,
    UploadRunning,
)
from storage.ingest.media import form_of
from storage.ingest.node_list import read_node_list
from storage.people.users import User

api = router(prefix="/v1", tags=["datasets"])

UPLOAD_PROBLEMS = problems(
    NotFound,
    AlreadyExists,
    NoRecords,
    UploadRunning,
    NodesMissing,
    BodyTooSlow,
    TooLarge,
    UnsupportedMediaType,
    InvalidRecords,
    InvalidRequest,
)


class VersionOut(Reply):
    """The version that queries read: the new one when ready, the one before while preparing."""

    dataset: str
    version: int
    status: Literal["ready", "preparing"]


class NodesOut(Reply):
    """A node list that was accepted."""

    dataset: str
    nodes: int


def _body(content: dict[str, Any], description: str) -> dict[str, Any]:
    body = {"required": True, "description": description, "content": content}
    return {"requestBody": body}


@api.put(
    "/datasets/{name}/nodes",
    dependencies=[allow("owner")],
    responses=UPLOAD_PROBLEMS,
    openapi_extra=_body(
        {"text/csv": {"schema": {"type": "string"}, "example": "alice\nbob\ncarol\n"}},
        "UTF-8 without a header; `Content-Encoding: gzip` is taken too.",
    ),
)
async def upload_nodes(
    name: str, request: Request, owner: CurrentUser, services: ServicesDep
) -> NodesOut:
    """The public names of a graph's nodes: an id a line, before the first records."""
    _check_length(request, services.settings)
    _, gzipped = _form(request, {"text/csv": None})
    nodes = await take_nodes(name, request.stream(), gzipped, owner, services)
    return NodesOut(dataset=name, nodes=nodes)


async def take_nodes(
    name: str, content: AsyncIterator[bytes], gzipped: bool, owner: User, services: Services
) -> int:
    """Read a list of nodes and let it name those of a graph; how many there are."""
    stored = await run_in_threadpool(owned, services.datasets, name, owner)
    _check_takes_nodes(stored)
    with ExitStack() as kept:
        path = await services.uploads.receive(content, kept)
        labels = await run_in_threadpool(
            read_node_list,
            path,
            gzipped=gzipped,
            limit=services.settings.decompressed_limit,
        )
        _check_fits(stored, len(labels))
        await run_in_threadpool(
            services.datasets.set_nodes,
            name,
            labels,
            max_degree=stored.description.get("max_degree"),
            actor=owner,
        )
    return len(labels)


@api.put(
    "/datasets/{name}/records",
    status_code=201,
    dependencies=[allow("owner")],
    response_model=VersionOut,
    responses={
        202: {"model": VersionOut, "description": "Being prepared; look at Location."},
        **UPLOAD_PROBLEMS,
    },
    openapi_extra=_body(record_forms.CONTENT, record_forms.DESCRIPTION),
)
async def upload_records(
    name: str, request: Request, owner: CurrentUser, services: ServicesDep
) -> Response:
    """The private records: a new version, under the same accounts, once it is prepared."""
    _check_length(request, services.settings)
    media_type, gzipped = _form(request)
    stored, published = await take_records(
        name, request.stream(), media_type, gzipped, owner, services
    )
    location = f"/v1/datasets/{stored.name}"
    if published is not None:
        out = VersionOut(dataset=stored.name, version=published.version, status="ready")
        return JSONResponse(out.model_dump(), status_code=201, headers={"Location": location})
    out = VersionOut(dataset=stored.name, version=stored.version, status="preparing")
    headers = {"Location": location, "Retry-After": "2"}
    return JSONResponse(out.model_dump(), status_code=202, headers=headers)


async def take_records(
    name: str,
    content: AsyncIterator[bytes],
    media_type: str,
    gzipped: bool,
    owner: User,
    services: Services,
) -> tuple[StoredDataset, Published | None]:
    """Read records and publish them; None while they are still being prepared."""
    stored = await run_in_threadpool(owned, services.datasets, name, owner)
    if stored.public is None:
        raise NodesMissing
    with ExitStack() as receiving:
        path = await services.uploads.receive(content, receiving)
        kept = receiving.pop_all()
    published = await services.uploads.publish(
        stored, stored.public, path, kept, media_type=media_type, gzipped=gzipped, actor=owner
    )
    return stored, published


@api.delete(
    "/datasets/{name}/records",
    status_code=204,
    dependencies=[allow("owner")],
    responses=problems(NotFound, NoRecords),
)
def withdraw_records(name: str, owner: CurrentUser, services: ServicesDep) -> Response:
    """No more queries of these records; the ledger and the stored answers stay."""
    owned(services.datasets, name, owner)
    services.datasets.withdraw(name, actor=owner)
    services.uploads.tidy(name)
    return Response(status_code=204)


def _check_length(request: Request, settings: Settings) -> None:
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:20]) > settings.upload_limit:
        raise BodyTooLarge(settings.upload_limit)


def _form(request: Request, only: dict[str, None] | None = None) -> tuple[str, bool]:
    """The media type of an upload and whether it is compressed."""
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip"):
        raise UnsupportedMediaType("Content-Encoding: gzip or none")
    media_type = request.headers.get("content-type", "")
    if only is not None and media_type.partition(";")[0].strip().lower() not in only:
        raise UnsupportedMediaType(*only)
    form_of(media_type, encoding == "gzip")
    return media_type, encoding == "gzip"


def _check_takes_nodes(stored: StoredDataset) -> None:
    """Only a graph whose nodes have no names yet takes a list of them."""
    if stored.description.get("kind") != "graph":
        raise InvalidRequest(
            [FieldError(("path", "name"), "kind", "only graphs take a list of nodes")]
        )
    domain = stored.public.domain if stored.public else None
    if isinstance(domain, GraphDomain) and (domain.labels is not None or stored.version):
        raise AlreadyExists("the nodes of this dataset are known already")


def _check_fits(stored: StoredDataset, nodes: int) -> None:
    """The list may not contradict what was registered."""
    most = stored.description.get("max_degree")
    if most is not None and most >= nodes:
        msg = f"a max_degree of {most} needs more nodes than that"
        raise InvalidRecords([(("upload",), "count", msg)])
    domain = stored.public.domain if stored.public else None
    if isinstance(domain, GraphDomain) and domain.nodes != nodes:
        msg = f"the graph was registered with {domain.nodes} nodes"
        raise InvalidRecords([(("upload",), "count", msg)])
