"""Datasets: what is public about them, and the door through which their records come."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from fastapi import Body as BodyParam
from pydantic import ConfigDict
from starlette.responses import JSONResponse, Response

from app.config.settings import MEGABYTE
from app.contract.amounts import Limit
from app.contract.descriptions import (
    GraphRegistration,
    PrefixRegistration,
    Registration,
    TableRegistration,
    described,
    relation,
)
from app.contract.models import Listing, Reply
from app.contract.problems import problems
from app.contract.times import moment
from app.http.access import CurrentUser, allow, any_key
from app.http.declarations import body_limit
from app.http.dependencies import DEFAULT_LIMIT, PageCursor, PageLimit, ServicesDep
from app.http.route import router
from app.usecases.services import Services
from app.usecases.visibility import visible
from mechanisms.model.domains import GraphDomain
from storage.catalogue.datasets import StoredDataset
from storage.catalogue.versions import Version
from storage.errors import AlreadyExists, InvalidCursor, NotFound
from storage.people.users import User

api = router(prefix="/v1", tags=["datasets"])


class VersionOut(Reply):
    """One upload that was published: ``ready`` when queries read it, ``retired`` since they do not.

    ``removed``: when its prepared records were deleted; running queries may still need them.
    """

    version: int
    status: Literal["ready", "retired"]
    published: datetime
    removed: datetime | None = None

    @classmethod
    def of(cls, one: Version, read: int) -> Self:
        return cls(
            version=one.number,
            status="ready" if one.number == read else "retired",
            published=moment(one.published_us),
            removed=None if one.removed_us is None else moment(one.removed_us),
        )


class DatasetOut(Reply):
    """The public description of a dataset; its members are those it was registered with.

    ``upload`` is for its owner alone, as are the statuses ``preparing`` and ``refused``: they are
    those of the latest upload, and ``upload.queries`` says what queries read meanwhile. So is
    ``versions``, which a dataset that is asked for by its name has.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str
    owner: str
    cap: Limit
    version: int
    status: str
    created: datetime
    upload: dict[str, Any] | None = None
    versions: list[VersionOut] | None = None

    @classmethod
    def of(cls, stored: StoredDataset, viewer: User) -> Self:
        return cls(
            **{**stored.description, **_nodes(stored)},
            name=stored.name,
            owner=stored.owner,
            cap=stored.cap,
            version=stored.version,
            created=moment(stored.created_us),
            **_state(stored, viewer),
        )


def _nodes(stored: StoredDataset) -> dict[str, Any]:
    """What a node list that came later completes; the list itself is not served."""
    if stored.public is None or not isinstance(stored.public.domain, GraphDomain):
        return {}
    domain = stored.public.domain
    return {"nodes": {"count": domain.nodes}, "max_degree": domain.max_degree}


class DatasetName(Reply):
    """All that an admin sees of a dataset."""

    name: str


def _state(stored: StoredDataset, viewer: User) -> dict[str, Any]:
    upload = stored.upload
    if upload is None or viewer.id != stored.owner_id:
        return {"status": stored.status}
    # The status is that of the upload; what queries read meanwhile is not to be guessed.
    queries = f"read version {stored.version}" if stored.status == "ready" else "have no records"
    shown = {
        "started": moment(upload.started_us),
        "status": upload.status,
        "queries": queries,
        **upload.detail,
    }
    return {"status": upload.status, "upload": shown}


def _shown(services: Services, stored: StoredDataset, viewer: User) -> dict[str, Any]:
    """What this caller may see of a dataset that is visible to them."""
    if "admin" in viewer.roles:
        # Admins see names; whoever has other roles too sees what these show.
        otherwise = replace(viewer, roles=viewer.roles - {"admin"})
        if not services.datasets.visible_to(stored, otherwise):
            return DatasetName(name=stored.name).model_dump(mode="json")
    return DatasetOut.of(stored, viewer).model_dump(mode="json", exclude_none=True)


REGISTRATIONS = {
    kind.__name__.removesuffix("Registration").lower(): {
        "value": kind.model_json_schema()["examples"][0]
    }
    for kind in (GraphRegistration, TableRegistration, PrefixRegistration)
}


@api.post(
    "/datasets",
    status_code=201,
    dependencies=[allow("owner"), body_limit(16 * MEGABYTE)],
    response_model=DatasetOut,
    responses=problems(AlreadyExists),
)
def register(
    registration: Annotated[Registration, BodyParam(openapi_examples=REGISTRATIONS)],
    owner: CurrentUser,
    services: ServicesDep,
) -> Response:
    """Register the public description of a dataset; it and its cap are fixed from then on."""
    stored = services.datasets.register(
        registration.name,
        owner=owner,
        description=described(registration),
        domain=registration.domain(),
        neighbouring=relation(registration),
        records_per_person=registration.records_per_person,
        cap=registration.cap,
        labels=registration.labels(),
    )
    return JSONResponse(
        _shown(services, stored, owner),
        status_code=201,
        headers={"Location": f"/v1/datasets/{stored.name}"},
    )


@api.get("/datasets", dependencies=[any_key], responses=problems(InvalidCursor))
def list_datasets(
    viewer: CurrentUser,
    services: ServicesDep,
    limit: PageLimit = DEFAULT_LIMIT,
    cursor: PageCursor = None,
) -> Listing[dict[str, Any]]:
    """The datasets that the caller may see, newest first; admins see names only."""
    page = services.datasets.page(viewer, limit, cursor)
    return Listing(
        items=[_shown(services, stored, viewer) for stored in page.items], next=page.next
    )


@api.get("/datasets/{name}", dependencies=[any_key], responses=problems(NotFound))
def show_dataset(name: str, viewer: CurrentUser, services: ServicesDep) -> dict[str, Any]:
    """The public description, the version that queries read, and the status."""
    stored = visible(services.datasets, name, viewer)
    shown = _shown(services, stored, viewer)
    is_owner = stored.owner_id == viewer.id and "owner" in viewer.roles
    if is_owner and (found := services.datasets.versions(stored.id)):
        versions = (VersionOut.of(one, stored.version) for one in found)
        shown["versions"] = [one.model_dump(mode="json", exclude_none=True) for one in versions]
    return shown
