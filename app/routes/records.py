"""Uploads of node lists and records, which are streamed to disk and never whole in memory."""

from typing import Any

from fastapi import Request
from starlette.responses import JSONResponse, Response

from app.config.settings import Settings
from app.contract import record_forms
from app.contract.datasets import NodesOut, UploadOut
from app.contract.errors import (
    BodyTooLarge,
    BodyTooSlow,
    InvalidRequest,
    NodesMissing,
    UnsupportedMediaType,
)
from app.contract.problems import problems
from app.http.access import CurrentCaller, allow
from app.http.declarations import takes_records
from app.http.dependencies import ServicesDep
from app.http.route import router
from app.usecases import records
from app.usecases.records import Delivery
from storage import errors as storage

api = router(prefix="/v1", tags=["datasets"])

UPLOAD_PROBLEMS = problems(
    storage.NotFound,
    storage.AlreadyExists,
    storage.NoRecords,
    storage.UploadRunning,
    NodesMissing,
    BodyTooSlow,
    storage.TooLarge,
    UnsupportedMediaType,
    storage.InvalidRecords,
    InvalidRequest,
)


def _body(content: dict[str, Any], description: str) -> dict[str, Any]:
    body = {"required": True, "description": description, "content": content}
    return {"requestBody": body}


@api.put(
    "/datasets/{name}/nodes",
    dependencies=[allow("owner"), takes_records],
    responses=UPLOAD_PROBLEMS,
    openapi_extra=_body(
        {"text/csv": {"schema": {"type": "string"}, "example": "alice\nbob\ncarol\n"}},
        "UTF-8 without a header; `Content-Encoding: gzip` is taken too.",
    ),
)
async def upload_nodes(
    name: str, request: Request, caller: CurrentCaller, services: ServicesDep
) -> NodesOut:
    """Upload the public names of a graph's nodes, one id per line, before the first records."""
    delivery = _delivery(request, services.settings)
    if delivery.media_type.partition(";")[0].strip().lower() != "text/csv":
        raise UnsupportedMediaType("text/csv")
    return await records.take_nodes(services, caller, name, delivery)


@api.put(
    "/datasets/{name}/records",
    status_code=201,
    dependencies=[allow("owner"), takes_records],
    response_model=UploadOut,
    responses={
        202: {"model": UploadOut, "description": "Being prepared; look at Location."},
        **UPLOAD_PROBLEMS,
    },
    openapi_extra=_body(record_forms.CONTENT, record_forms.DESCRIPTION),
)
async def upload_records(
    name: str, request: Request, caller: CurrentCaller, services: ServicesDep
) -> Response:
    """Upload private records. They become a new version of the dataset, under the same accounts."""
    delivery = _delivery(request, services.settings)
    upload = await records.take_records(services, caller, name, delivery)
    headers = {"Location": f"/v1/datasets/{upload.dataset}"}
    if upload.status == "ready":
        return JSONResponse(upload.model_dump(), status_code=201, headers=headers)
    return JSONResponse(
        upload.model_dump(), status_code=202, headers={**headers, "Retry-After": "2"}
    )


@api.delete(
    "/datasets/{name}/records",
    status_code=204,
    dependencies=[allow("owner"), takes_records],
    responses=problems(storage.NotFound, storage.NoRecords),
)
def withdraw_records(name: str, caller: CurrentCaller, services: ServicesDep) -> Response:
    """Withdraw the records, so that queries read them no longer; ledger and answers stay."""
    records.withdraw(services, caller, name)
    return Response(status_code=204)


def _delivery(request: Request, settings: Settings) -> Delivery:
    """The body of an upload and its declared form. Raises: BodyTooLarge, UnsupportedMediaType."""
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:20]) > settings.upload_limit:
        raise BodyTooLarge(settings.upload_limit)
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip"):
        raise UnsupportedMediaType("Content-Encoding: gzip or none")
    media_type = request.headers.get("content-type", "")
    return Delivery(request.stream(), media_type, encoding == "gzip")
