"""The public facts of datasets: descriptions, versions and the state of uploads."""

from dataclasses import dataclass, replace
from typing import Any

from app.contract.budgets import AnalystAccount
from app.contract.datasets import DatasetName, DatasetOut, DatasetVersion, Facts, graph_domain
from app.contract.descriptions import Registration, described, relation
from app.contract.errors import InvalidRequest
from app.contract.models import Listing
from app.contract.times import moment
from app.identity.callers import Caller
from app.usecases.accounts import budgets
from app.usecases.services import Services
from app.usecases.visibility import owned, require, visible
from storage.catalogue.datasets import StoredDataset
from storage.catalogue.versions import Version
from storage.errors import NotFound
from storage.queries.history import by_minute

#: What the caller may see of a dataset: all of it, or its name alone.
DatasetView = DatasetOut | DatasetName


@dataclass(frozen=True)
class DatasetDetails:
    """The part of one dataset that the caller may see, and whether the caller owns it.

    ``may_certify``: whether the caller may have its certificate.
    """

    view: DatasetView
    is_owner: bool
    may_certify: bool


def register(services: Services, caller: Caller, registration: Registration) -> DatasetView:
    """Register the public description of a dataset permanently. Raises: AlreadyExists."""
    require(caller, "owner")
    stored = services.datasets.register(
        registration.name,
        owner=caller.user,
        description=described(registration),
        domain=registration.domain(),
        neighbouring=relation(registration),
        records_per_person=registration.records_per_person,
        cap=registration.cap,
        labels=registration.labels(),
    )
    return _view(services, caller, stored)


def replace_description(
    services: Services, caller: Caller, name: str, registration: Registration
) -> DatasetView:
    """Replace the description and the cap of the caller's dataset; no analyst may know them yet.

    Raises: NotFound; InvalidRequest for another name or a list of nodes; AlreadyExists once an
    allowance was granted, while records are published, and where nodes have names; UploadRunning.
    """
    require(caller, "owner")
    owned(services, caller, name)
    if registration.name != name:
        raise InvalidRequest.at("body", "name", type="name", msg="it is not the dataset's name")
    if registration.labels() is not None:
        msg = "a replacement has no list of nodes: upload it afterwards"
        raise InvalidRequest.at("body", "nodes", type="nodes", msg=msg)
    stored = services.datasets.replace(
        name,
        actor=caller.user,
        description=described(registration),
        domain=registration.domain(),
        neighbouring=relation(registration),
        records_per_person=registration.records_per_person,
        cap=registration.cap,
    )
    return _view(services, caller, stored)


def page(
    services: Services, caller: Caller, limit: int, cursor: str | None, search: str = ""
) -> Listing[DatasetView]:
    """The datasets that the caller may see, newest first. Raises: InvalidCursor.

    ``search``: a part of the name.
    """
    datasets = services.datasets.page(caller.user, limit, cursor, search)
    items = [_view(services, caller, stored) for stored in datasets.items]
    return Listing(items=items, next=datasets.next)


def describe(services: Services, caller: Caller, name: str) -> DatasetDetails:
    """One dataset, with its versions if the caller owns it. Raises: NotFound."""
    stored = visible(services, caller, name)
    view = _view(services, caller, stored)
    is_owner = stored.owner_id == caller.id and "owner" in caller.roles
    if is_owner and isinstance(view, DatasetOut):
        now_us = services.database.now_us()
        versions = [
            _version(one, stored.version, now_us) for one in services.versions.published(stored.id)
        ]
        view = view.model_copy(update={"versions": versions or None})
    return DatasetDetails(view, is_owner, is_owner or "auditor" in caller.roles)


def facts(services: Services, caller: Caller, name: str) -> Facts:
    """Public facts for the form of a query. Raises: NotFound, also without an account for it."""
    require(caller, "analyst")
    stored = visible(services, caller, name)
    if services.ledger.account(stored.id, caller.id) is None:
        raise NotFound
    return Facts.of(stored.name, stored.description, stored.public)


def queryable(services: Services, caller: Caller) -> list[AnalystAccount]:
    """The caller's accounts on those datasets whose records can be queried now."""
    require(caller, "analyst")
    ready = services.datasets.ready(caller.id)
    return [one for one in budgets.own(services, caller).items if one.dataset in ready]


def _view(services: Services, caller: Caller, stored: StoredDataset) -> DatasetView:
    if "admin" in caller.roles:
        # Admins may see the name of every dataset. To see more, the caller needs another role that
        # allows it.
        otherwise = replace(caller.user, roles=caller.roles - {"admin"})
        if not services.datasets.visible_to(stored, otherwise):
            return DatasetName(name=stored.name)
    return DatasetOut(
        **{**stored.description, **_nodes(stored)},
        name=stored.name,
        owner=stored.owner,
        cap=stored.cap,
        version=stored.version,
        created=moment(stored.created_us),
        **_state(stored, caller),
    )


def _nodes(stored: StoredDataset) -> dict[str, Any]:
    """The number of nodes and the maximal degree of a graph, once its nodes are known."""
    domain = graph_domain(stored.public)
    if domain is None:
        return {}
    return {"nodes": {"count": domain.nodes}, "max_degree": domain.max_degree}


def _state(stored: StoredDataset, caller: Caller) -> dict[str, Any]:
    upload = stored.upload
    if upload is None or caller.id != stored.owner_id:
        return {"status": stored.status}
    # ``status`` describes the upload. The member ``queries`` therefore says which version queries
    # read meanwhile.
    queries = f"read version {stored.version}" if stored.status == "ready" else "have no records"
    members = {
        "started": moment(upload.started_us),
        "status": upload.status,
        "queries": queries,
        **upload.detail,
    }
    return {"status": upload.status, "upload": members}


def _version(one: Version, current: int, now_us: int) -> DatasetVersion:
    """A version as its owner sees it.

    Danger: a version is removed after the last query that reads it, and that query may have taken
    longer than its public deadline because of the records. The exact moment of the removal would
    show this, so it is told only as of the last full minute.
    """
    removed_us = one.removed_us
    if removed_us is not None and removed_us > by_minute(now_us):
        removed_us = None
    return DatasetVersion(
        version=one.number,
        status="ready" if one.number == current else "retired",
        published=moment(one.published_us),
        removed=None if removed_us is None else moment(by_minute(removed_us)),
    )
