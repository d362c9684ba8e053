"""Sources of records, and pulls from the source of a dataset."""

from typing import Annotated, Any

from fastapi import Body as BodyParam
from starlette.responses import JSONResponse, Response

from app.contract.datasets import UploadOut
from app.contract.errors import InvalidRequest, NodesMissing
from app.contract.models import Listing
from app.contract.problems import problems
from app.contract.sources import AttachmentOut, SourceIn, SourceOut
from app.http.access import CurrentCaller, allow
from app.http.declarations import takes_records
from app.http.dependencies import ServicesDep
from app.http.route import router
from app.usecases import sources
from storage import errors as storage

#: Example bodies for the interactive documentation.
ATTACHMENTS: dict[str, Any] = {"table": {"value": {"source": "shop", "table": "public.visits"}}}

api = router(prefix="/v1", tags=["datasets"])


@api.get("/sources", dependencies=[allow("owner")])
def list_sources(caller: CurrentCaller, services: ServicesDep) -> Listing[SourceOut]:
    """List the sources that the caller may use and their tables, as they are now."""
    return sources.listing(services, caller)


@api.put(
    "/datasets/{name}/source",
    dependencies=[allow("owner")],
    responses=problems(storage.NotFound, storage.SourceFailed, storage.Busy),
)
def attach_source(
    name: str,
    wish: Annotated[SourceIn, BodyParam(openapi_examples=ATTACHMENTS)],
    caller: CurrentCaller,
    services: ServicesDep,
) -> AttachmentOut:
    """Set the source and the table from which the records of a dataset are pulled."""
    return sources.attach(services, caller, name, wish)


@api.get(
    "/datasets/{name}/source",
    dependencies=[allow("owner")],
    responses=problems(storage.NotFound),
)
def show_source(name: str, caller: CurrentCaller, services: ServicesDep) -> AttachmentOut:
    """Show the source and the table of a dataset."""
    return sources.attached(services, caller, name)


@api.delete(
    "/datasets/{name}/source",
    status_code=204,
    dependencies=[allow("owner")],
    responses=problems(storage.NotFound),
)
def detach_source(name: str, caller: CurrentCaller, services: ServicesDep) -> Response:
    """Remove the source of a dataset; its records stay."""
    sources.detach(services, caller, name)
    return Response(status_code=204)


@api.post(
    "/datasets/{name}/source/pull",
    status_code=201,
    dependencies=[allow("owner"), takes_records],
    response_model=UploadOut,
    responses={
        202: {"model": UploadOut, "description": "Being prepared; look at Location."},
        **problems(
            storage.NotFound,
            storage.NoRecords,
            storage.UploadRunning,
            NodesMissing,
            storage.SourceFailed,
            storage.Busy,
            storage.TooLarge,
            storage.InvalidRecords,
            InvalidRequest,
        ),
    },
)
async def pull_source(name: str, caller: CurrentCaller, services: ServicesDep) -> Response:
    """Read the table of a dataset's source and take it as an upload of records."""
    upload = await sources.pull(services, caller, name)
    headers = {"Location": f"/v1/datasets/{upload.dataset}"}
    if upload.status == "ready":
        return JSONResponse(upload.model_dump(), status_code=201, headers=headers)
    return JSONResponse(
        upload.model_dump(), status_code=202, headers={**headers, "Retry-After": "2"}
    )
