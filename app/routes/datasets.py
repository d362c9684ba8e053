"""The public facts of datasets."""

from typing import Annotated, Any

from fastapi import Body as BodyParam
from starlette.responses import JSONResponse, Response

from app.config.settings import MEGABYTE
from app.contract.datasets import DatasetOut
from app.contract.descriptions import REGISTRATIONS, Registration
from app.contract.models import Listing
from app.contract.problems import problems
from app.http.access import CurrentCaller, allow, any_key
from app.http.declarations import body_limit
from app.http.dependencies import DEFAULT_LIMIT, PageCursor, PageLimit, ServicesDep
from app.http.route import router
from app.usecases import datasets
from storage.errors import AlreadyExists, InvalidCursor, NotFound, UploadRunning

api = router(prefix="/v1", tags=["datasets"])


@api.post(
    "/datasets",
    status_code=201,
    dependencies=[allow("owner"), body_limit(16 * MEGABYTE)],
    response_model=DatasetOut,
    responses=problems(AlreadyExists),
)
def register(
    registration: Annotated[Registration, BodyParam(openapi_examples=REGISTRATIONS)],
    caller: CurrentCaller,
    services: ServicesDep,
) -> Response:
    """Register a dataset. Its public description and its cap are fixed with the first grant."""
    view = datasets.register(services, caller, registration)
    location = {"Location": f"/v1/datasets/{view.name}"}
    return JSONResponse(_members(view), status_code=201, headers=location)


@api.get("/datasets", dependencies=[any_key], responses=problems(InvalidCursor))
def list_datasets(
    caller: CurrentCaller,
    services: ServicesDep,
    limit: PageLimit = DEFAULT_LIMIT,
    cursor: PageCursor = None,
) -> Listing[dict[str, Any]]:
    """List the datasets that the caller may see, newest first; admins see names only."""
    page = datasets.page(services, caller, limit, cursor)
    return Listing(items=[_members(view) for view in page.items], next=page.next)


@api.get("/datasets/{name}", dependencies=[any_key], responses=problems(NotFound))
def show_dataset(name: str, caller: CurrentCaller, services: ServicesDep) -> dict[str, Any]:
    """Show the public description of a dataset, the version that queries read, and the status."""
    return _members(datasets.describe(services, caller, name).view)


@api.put(
    "/datasets/{name}",
    dependencies=[allow("owner"), body_limit(16 * MEGABYTE)],
    responses=problems(NotFound, AlreadyExists, UploadRunning),
)
def replace_description(
    name: str,
    registration: Annotated[Registration, BodyParam(openapi_examples=REGISTRATIONS)],
    caller: CurrentCaller,
    services: ServicesDep,
) -> dict[str, Any]:
    """Replace the description and the cap.

    Allowed only if no budget was ever granted and no version of the records is published.
    """
    return _members(datasets.replace_description(services, caller, name, registration))


def _members(view: datasets.DatasetView) -> dict[str, Any]:
    return view.model_dump(mode="json", exclude_none=True)
