"""Rows of datasets: the columns that are read, and the classes for their values."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal

from sqlalchemy import BindParameter, Connection, Row, Select, and_, func, select

from accounting.account import AccountRank, Limit
from mechanisms.model.domains import Dataset
from storage.catalogue import versions
from storage.database.expressions import now_us
from storage.database.tables import budget_account, dataset, upload, users
from storage.errors import NotFound
from storage.files.labels import DistantLabels
from storage.ledger.accounts import LIMITS


@dataclass(frozen=True, slots=True)
class UploadState:
    """The latest upload to a dataset. Only the owner of the dataset may see it.

    ``detail``: the progress of the preparation while ``status`` is "preparing". It is the errors of
    ``InvalidRecords``, or another failure, once ``status`` is "refused".
    """

    id: int
    status: Literal["preparing", "refused"]
    detail: dict[str, Any]
    started_us: int


@dataclass(frozen=True, slots=True)
class StoredDataset:
    """A dataset as stored. ``public`` is None until the node list has been uploaded.

    ``version``: the version that queries read, 0 if there is none. ``description``: the
    registration as served. Only the owner may see ``upload``.
    """

    id: int
    name: str
    owner_id: int
    owner: str
    description: dict[str, Any]
    public: Dataset | None
    cap: Limit
    version: int
    status: Literal["empty", "ready"]
    upload: UploadState | None
    created_us: int
    names: DistantLabels | None = field(default=None, compare=False)
    """The names of its nodes, if they are in a store."""


_d, _u, _cap = dataset.c, upload.c, budget_account.c
_latest = (
    select(_u.id)
    .where(_u.dataset_id == _d.id)
    .order_by(_u.id.desc())
    .limit(1)
    .scalar_subquery()
    .correlate(dataset)
)
#: The columns that a query needs. Descriptions and domains may be megabytes of text, so a process
#: reads them once (``storage.catalogue.dataset_facts``) and not with every row.
FACTS = (
    _d.id,
    _d.name,
    _d.owner_id,
    # The parsed description of a dataset is cached, and the key of the cache contains the length of
    # the dataset's domain. This length is 0 until a graph with named nodes gets its node list,
    # which completes the domain. Then the description is read again.
    func.coalesce(func.length(_d.domain), 0).label("domain_length"),
    _d.fixed_rows,
    _d.version,
    # The key of the cache also contains the moment of the description, which changes when the owner
    # replaces the description.
    _d.created_us,
)
COLUMNS = (
    *FACTS,
    users.c.name.label("owner"),
    *LIMITS,
    _u.id.label("upload_id"),
    _u.state,
    _u.started_us,
    _u.lease_until,
    _u.detail,
    now_us().label("now"),
)
WITH_CAP = dataset.join(
    budget_account,
    and_(_cap.rank == int(AccountRank.DATASET), _cap.dataset_id == _d.id, _cap.analyst_id == 0),
)
DATASETS: Select[Any] = select(*COLUMNS).select_from(
    WITH_CAP.join(users, users.c.id == _d.owner_id).outerjoin(upload, _u.id == _latest)
)


granted = budget_account.alias("granted").c


def granted_to(analyst_id: int | BindParameter[int]) -> Select[Any]:
    """The ids of datasets for which the analyst has an account."""
    return select(granted.dataset_id).where(
        granted.rank == int(AccountRank.ANALYST_ON_DATASET), granted.analyst_id == analyst_id
    )


def upload_state(row: Row[Any]) -> UploadState | None:
    if row.upload_id is None or row.state == versions.PUBLISHED:
        return None
    if row.state != versions.PREPARING:
        return UploadState(row.upload_id, "refused", json.loads(row.detail), row.started_us)
    if row.lease_until <= row.now:
        return UploadState(row.upload_id, "refused", dict(versions.INTERRUPTED), row.started_us)
    return UploadState(row.upload_id, "preparing", json.loads(row.detail), row.started_us)


def id_of(connection: Connection, name: str) -> int:
    """The id of the dataset of this name. Raises: NotFound."""
    id = connection.execute(select(_d.id).where(_d.name == name)).scalar_one_or_none()
    if id is None:
        raise NotFound("there is no such dataset")
    return int(id)
