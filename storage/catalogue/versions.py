"""Uploads and versions of a dataset: preparing, publishing, withdrawing.

A version gets its number when it is published. Publishing and withdrawing lock the row of the
dataset's cap, as every charge does. So no query is charged for a version that was just withdrawn.
Functions work on a connection in a transaction.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    func,
    insert,
    literal_column,
    or_,
    select,
    text,
    tuple_,
    update,
)

from accounting.account import AccountRank
from mechanisms.model.domains import NeighbouringRelation
from storage.catalogue.dataset_states import record_version
from storage.database.expressions import insert_once, now_us
from storage.database.tables import budget_account, dataset, dataset_version, query, upload
from storage.errors import InvalidRecords, NoRecords, NotFound, UploadRunning
from storage.ledger.freezing import OPERATOR
from storage.ledger.requests import QueryState

#: The lease in microseconds of a process that prepares an upload. Each heartbeat of the process
#: renews it; after it expires, another process may take the upload over.
UPLOAD_LEASE_US = 60 * 1_000_000

PREPARING, REFUSED, PUBLISHED = range(3)
REPLACE = NeighbouringRelation.REPLACE.value
WITHDRAWN = {"title": "the records were withdrawn while they were being prepared"}
INTERRUPTED = {"title": "the preparation was interrupted; send the records again"}

_u, _d, _v, _q = upload.c, dataset.c, dataset_version.c, query.c
#: The versions that running queries read. The state is a literal in the SQL text, so that the index
#: of running queries is used and ended queries are skipped.
_NAMED = select(_q.dataset_id, _q.dataset_version).where(
    _q.state == literal_column(str(int(QueryState.RUNNING)))
)
#: True for a version that a running query reads, so that its records must stay.
IS_IN_USE = tuple_(_v.dataset_id, _v.version).in_(_NAMED)
#: The condition of the partial unique index that allows one running upload per dataset.
_PREPARING = text("state = 0")


@dataclass(frozen=True, slots=True)
class Version:
    """A published version; ``removed_us`` is None until its arrays are removed."""

    number: int
    published_us: int
    removed_us: int | None


def begin_upload(connection: Connection, dataset_id: int) -> int:
    """The id of a new upload. Raises: UploadRunning while another upload has its lease."""
    refuse(connection, INTERRUPTED, _u.dataset_id == dataset_id, _u.lease_until <= now_us())
    at_us = connection.execute(select(now_us())).scalar_one()
    make = insert_once(connection.dialect.name, upload, "dataset_id", where=_PREPARING).returning(
        _u.id
    )
    upload_id = connection.execute(
        make,
        {
            "dataset_id": dataset_id,
            "state": PREPARING,
            "started_us": at_us,
            "lease_until": at_us + UPLOAD_LEASE_US,
            "detail": _encode({}),
        },
    ).scalar_one_or_none()
    if upload_id is None:
        raise UploadRunning("another upload to this dataset is still being prepared")
    return int(upload_id)


def hold_upload(
    connection: Connection,
    upload_id: int,
    detail: Mapping[str, Any] | None = None,
    *,
    if_expired: bool = False,
) -> bool:
    """Extend the lease of a running upload, and store its progress. Returns False if it has ended.

    ``if_expired``: extend only an expired lease, so that one of several concurrent callers gets
    True and takes the upload over.
    """
    values: dict[str, Any] = {"lease_until": now_us() + UPLOAD_LEASE_US}
    if detail is not None:
        values["detail"] = _encode(detail)
    running = update(upload).where(_u.id == upload_id, _u.state == PREPARING)
    if if_expired:
        running = running.where(_u.lease_until <= now_us())
    return connection.execute(running.values(values)).rowcount == 1


def refuse_upload(connection: Connection, upload_id: int, detail: Mapping[str, Any]) -> None:
    refuse(connection, detail, _u.id == upload_id)


def refuse(
    connection: Connection, detail: Mapping[str, Any], *conditions: ColumnElement[bool]
) -> int:
    """Refuse the running uploads that fulfil the conditions. Returns their number."""
    preparing = update(upload).where(_u.state == PREPARING, *conditions)
    refused = preparing.values(state=REFUSED, detail=_encode(detail))
    return connection.execute(refused).rowcount


def next_version(
    connection: Connection,
    upload_id: int,
    rows: int | None,
    folder: str | None = None,
    manifest: bytes | None = None,
) -> tuple[int, int]:
    """Make the upload the version that queries read. Returns (dataset id, version).

    ``rows``: the row count of a table under the relation ``replace``, else None. ``folder``: the
    folder of the arrays in an object store, if there is one. ``manifest``: the digest of the
    manifest of its arrays.
    Raises: NotFound for an upload that has ended; InvalidRecords if another row count is fixed.
    """
    dataset_id = connection.execute(
        update(upload)
        .where(_u.id == upload_id, _u.state == PREPARING)
        .values(state=PUBLISHED)
        .returning(_u.dataset_id)
    ).scalar_one_or_none()
    if dataset_id is None:
        raise NotFound("the upload is over")
    lock_cap(connection, dataset_id)
    published = update(dataset).where(_d.id == dataset_id)
    if rows is None:
        published = published.where(_d.neighbouring != REPLACE)
    else:
        fixed = or_(_d.fixed_rows.is_(None), _d.fixed_rows == rows)
        published = published.where(_d.neighbouring == REPLACE, fixed).values(fixed_rows=rows)
    version = connection.execute(
        published.values(versions=_d.versions + 1, version=_d.versions + 1).returning(_d.version)
    ).scalar_one_or_none()
    if version is None:
        raise InvalidRecords([(("rows",), "row_count", _wrong_rows(connection, dataset_id, rows))])
    connection.execute(
        insert(dataset_version).values(
            dataset_id=dataset_id,
            version=version,
            published_us=now_us(),
            folder=folder,
            manifest_digest=manifest,
        )
    )
    return int(dataset_id), int(version)


def adopt_manifest(connection: Connection, dataset_id: int, version: int, manifest: bytes) -> bool:
    """Store the digest of a manifest that an earlier release published without one.

    Returns False, and changes nothing, if the version already has a digest.
    """
    adopted = connection.execute(
        update(dataset_version)
        .where(_v.dataset_id == dataset_id, _v.version == version, _v.manifest_digest.is_(None))
        .values(manifest_digest=manifest)
    )
    return adopted.rowcount == 1


def withdraw(connection: Connection, dataset_id: int) -> int:
    """Let no further query read the records, and refuse a running upload.

    Returns the withdrawn version, or 0 if there was only an upload. Raises: NoRecords.
    """
    refused = refuse(connection, WITHDRAWN, _u.dataset_id == dataset_id)
    lock_cap(connection, dataset_id)
    current = connection.execute(select(_d.version).where(_d.id == dataset_id)).scalar_one()
    gone = connection.execute(
        update(dataset).where(_d.id == dataset_id, _d.version > 0).values(version=0)
    )
    if gone.rowcount == 0 and refused == 0:
        raise NoRecords("the dataset has no records to withdraw")
    return int(current)


def published_versions(connection: Connection, dataset_id: int) -> list[Version]:
    """All versions, newest first. Only the owner may see the times of publication."""
    published = select(_v.version, _v.published_us, _v.removed_us).where(
        _v.dataset_id == dataset_id
    )
    return [Version(*row) for row in connection.execute(published.order_by(_v.version.desc()))]


def needed_versions(connection: Connection, dataset_id: int | None = None) -> Sequence[Any]:
    """The versions that queries may read: the current ones, and those of running queries.

    Rows of dataset id, version, the digest of its manifest, and what ``Datasets.facts`` needs; of
    one dataset or of all.
    """
    needed = (
        select(
            *(_d.id, _v.version, _v.manifest_digest, _d.fixed_rows, _d.created_us),
            func.coalesce(func.length(_d.domain), 0).label("domain_length"),
        )
        .join_from(dataset_version, dataset, _d.id == _v.dataset_id)
        .where(_v.removed_us.is_(None), or_(_v.version == _d.version, IS_IN_USE))
        .order_by(_d.id, _v.version)
    )
    if dataset_id is not None:
        needed = needed.where(_d.id == dataset_id)
    return connection.execute(needed).all()


def removable_versions(
    connection: Connection, dataset_id: int | None = None
) -> list[tuple[int, int, str | None]]:
    """The versions that are neither current nor read by a running query, but still have arrays.

    Returns (dataset id, version, folder in an object store) for one dataset or for all.
    """
    removable = (
        select(_v.dataset_id, _v.version, _v.folder)
        .join_from(dataset_version, dataset, _d.id == _v.dataset_id)
        .where(_v.removed_us.is_(None), _v.version != _d.version, ~IS_IN_USE)
        .order_by(_v.dataset_id, _v.version)
    )
    if dataset_id is not None:
        removable = removable.where(_v.dataset_id == dataset_id)
    return [(row.dataset_id, row.version, row.folder) for row in connection.execute(removable)]


def mark_removed(dataset_id: int, version: int, connection: Connection) -> None:
    connection.execute(
        update(dataset_version)
        .where(_v.dataset_id == dataset_id, _v.version == version)
        .values(removed_us=now_us())
    )
    record_version(connection, OPERATOR, dataset_id, version, "records.remove")


def _wrong_rows(connection: Connection, dataset_id: int, rows: int | None) -> str:
    row = connection.execute(
        select(_d.neighbouring, _d.fixed_rows).where(_d.id == dataset_id)
    ).one()
    if (row.neighbouring == REPLACE) != (rows is not None):
        raise ValueError("the rows of `replace` tables, and of no others, are public")
    return f"the table must have exactly {row.fixed_rows} rows"


def lock_cap(connection: Connection, dataset_id: int) -> None:
    """Wait for running charges on the dataset, and block new ones until the transaction ends.

    On SQLite all writers block each other anyway.
    """
    c = budget_account.c
    cap = select(c.id).where(
        c.rank == int(AccountRank.DATASET), c.dataset_id == dataset_id, c.analyst_id == 0
    )
    connection.execute(cap.with_for_update()).scalar_one()


def _encode(detail: Mapping[str, Any]) -> str:
    return json.dumps(detail, ensure_ascii=False, separators=(",", ":"))
