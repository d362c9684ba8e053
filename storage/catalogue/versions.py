"""Uploads and versions of a dataset: what is being prepared, what is published, what is withdrawn.

A version number is given at publication only, and publishing and withdrawing lock the row of the
dataset's cap, as every charge does: no query is charged for a version that has just gone.
Functions work on a connection in a transaction.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, insert, or_, select, text, update

from accounting.account import AccountRank
from mechanisms.model.domains import NeighbouringRelation
from storage.database.expressions import insert_once, now_us
from storage.database.tables import budget_account, dataset, dataset_version, query, upload
from storage.errors import InvalidRecords, NoRecords, NotFound, UploadRunning

#: A preparation that has been silent for this long has died with its process.
UPLOAD_LEASE_US = 60 * 1_000_000

PREPARING, REFUSED, PUBLISHED = range(3)
REPLACE = NeighbouringRelation.REPLACE.value
WITHDRAWN = {"title": "the records were withdrawn while they were being prepared"}
INTERRUPTED = {"title": "the preparation was interrupted; send the records again"}

_u, _d = upload.c, dataset.c
_PREPARING = text("state = 0")  # as the partial unique index has it: one live upload a dataset


@dataclass(frozen=True, slots=True)
class Version:
    """One that was published; ``removed_us`` is None while its arrays are there."""

    number: int
    published_us: int
    removed_us: int | None


def begin_upload(connection: Connection, dataset_id: int) -> int:
    """The id of a new upload. Raises: UploadRunning while another one is alive."""
    connection.execute(
        update(upload)
        .where(_u.dataset_id == dataset_id, _u.state == PREPARING, _u.lease_until <= now_us())
        .values(state=REFUSED, detail=encode(INTERRUPTED))
    )
    at_us = connection.execute(select(now_us())).scalar_one()
    make = insert_once(connection.dialect.name, upload, "dataset_id", where=_PREPARING).returning(
        _u.id
    )
    begun = connection.execute(
        make,
        {
            "dataset_id": dataset_id,
            "state": PREPARING,
            "started_us": at_us,
            "lease_until": at_us + UPLOAD_LEASE_US,
            "detail": encode({}),
        },
    ).scalar_one_or_none()
    if begun is None:
        raise UploadRunning("another upload to this dataset is still being prepared")
    return int(begun)


def keep_upload(connection: Connection, upload_id: int, detail: Mapping[str, Any] | None) -> None:
    values: dict[str, Any] = {"lease_until": now_us() + UPLOAD_LEASE_US}
    if detail is not None:
        values["detail"] = encode(detail)
    connection.execute(
        update(upload).where(_u.id == upload_id, _u.state == PREPARING).values(values)
    )


def claim_upload(connection: Connection, upload_id: int) -> bool:
    """Take an upload over whose process has been silent for a lease; one alone succeeds."""
    claimed = connection.execute(
        update(upload)
        .where(_u.id == upload_id, _u.state == PREPARING, _u.lease_until <= now_us())
        .values(lease_until=now_us() + UPLOAD_LEASE_US)
    )
    return claimed.rowcount == 1


def refuse_upload(connection: Connection, upload_id: int, detail: Mapping[str, Any]) -> None:
    connection.execute(
        update(upload)
        .where(_u.id == upload_id, _u.state == PREPARING)
        .values(state=REFUSED, detail=encode(detail))
    )


def next_version(
    connection: Connection, upload_id: int, rows: int | None, folder: str | None = None
) -> tuple[int, int]:
    """Make the upload the version that queries read: (dataset id, version).

    ``folder``: where its arrays are in a store. Raises: NotFound for an upload that is over;
    InvalidRecords when the rows of a ``replace`` table were fixed at another number.
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
            dataset_id=dataset_id, version=version, published_us=now_us(), folder=folder
        )
    )
    return int(dataset_id), int(version)


def withdraw(connection: Connection, dataset_id: int) -> int:
    """No more queries from now on, and what is being prepared will not be published.

    Returns: the version that was withdrawn, 0 when there was only an upload. Raises: NoRecords.
    """
    stopped = connection.execute(
        update(upload)
        .where(_u.dataset_id == dataset_id, _u.state == PREPARING)
        .values(state=REFUSED, detail=encode(WITHDRAWN))
    )
    lock_cap(connection, dataset_id)
    current = connection.execute(select(_d.version).where(_d.id == dataset_id)).scalar_one()
    gone = connection.execute(
        update(dataset).where(_d.id == dataset_id, _d.version > 0).values(version=0)
    )
    if gone.rowcount == 0 and stopped.rowcount == 0:
        raise NoRecords("the dataset has no records to withdraw")
    return int(current)


def published_versions(connection: Connection, dataset_id: int) -> list[Version]:
    """All of them, newest first; when they were published is for the owner alone."""
    v = dataset_version.c
    wanted = select(v.version, v.published_us, v.removed_us).where(v.dataset_id == dataset_id)
    return [Version(*row) for row in connection.execute(wanted.order_by(v.version.desc()))]


def removable_versions(
    connection: Connection, dataset_id: int | None = None
) -> list[tuple[int, int, str | None]]:
    """Versions whose arrays nobody will open again: not current, and no open query names them.

    Returns: (dataset id, version, folder in a store) each, of one dataset or of all.
    """
    v, q = dataset_version.c, query.c
    opened = (
        select(q.id)
        .where(q.dataset_id == v.dataset_id, q.dataset_version == v.version, q.state == 0)
        .exists()
    )
    removable = (
        select(v.dataset_id, v.version, v.folder)
        .join_from(dataset_version, dataset, _d.id == v.dataset_id)
        .where(v.removed_us.is_(None), v.version != _d.version, ~opened)
        .order_by(v.dataset_id, v.version)
    )
    if dataset_id is not None:
        removable = removable.where(v.dataset_id == dataset_id)
    return [(row.dataset_id, row.version, row.folder) for row in connection.execute(removable)]


def mark_removed(dataset_id: int, version: int, connection: Connection) -> None:
    v = dataset_version.c
    connection.execute(
        update(dataset_version)
        .where(v.dataset_id == dataset_id, v.version == version)
        .values(removed_us=now_us())
    )


def _wrong_rows(connection: Connection, dataset_id: int, rows: int | None) -> str:
    row = connection.execute(
        select(_d.neighbouring, _d.fixed_rows).where(_d.id == dataset_id)
    ).one()
    if (row.neighbouring == REPLACE) != (rows is not None):
        raise ValueError("the rows of `replace` tables, and of no others, are public")
    return f"the table must have exactly {row.fixed_rows} rows"


def lock_cap(connection: Connection, dataset_id: int) -> None:
    """Wait for charges under way on the dataset, and make new ones wait (on SQLite all do)."""
    c = budget_account.c
    cap = select(c.id).where(
        c.rank == int(AccountRank.DATASET), c.dataset_id == dataset_id, c.analyst_id == 0
    )
    connection.execute(cap.with_for_update()).scalar_one()


def encode(detail: Mapping[str, Any]) -> str:
    return json.dumps(detail, ensure_ascii=False, separators=(",", ":"))
