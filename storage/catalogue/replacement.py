"""Replacing the description of a dataset, for which nothing was ever granted and nothing is open.

Danger: whoever holds an allowance decided on the description, and prepared records fit no other.
So one account of an analyst, one readable version or one running upload refuses the change.
"""

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, exists, select, text, update

from accounting.account import AccountRank, Limit
from mechanisms.model.domains import Domain, NeighbouringRelation, TableDomain
from storage.catalogue import versions
from storage.catalogue.descriptions import LABELLED, encode_domain
from storage.catalogue.person_keys import delete_person_key
from storage.database.expressions import now_us
from storage.database.tables import budget_account, dataset, upload
from storage.errors import AlreadyExists, UploadRunning
from storage.ledger.ledger import change_cap

_d, _a, _u = dataset.c, budget_account.c, upload.c
REPLACED = {"title": "the description was replaced; send the records again"}


def replace_description(
    connection: Connection,
    dataset_id: int,
    *,
    actor_id: int,
    description: Mapping[str, Any],
    domain: Domain | None,
    neighbouring: NeighbouringRelation,
    records_per_person: int,
    cap: Limit,
) -> None:
    """Writes a new description and cap into the row of a dataset, and ends its expired uploads.

    ``created_us`` becomes the moment of the change. It is a part of the key under which processes
    cache facts, and the fence of uploads that have read the old description.

    Raises: AlreadyExists if an account was ever opened, records are published, or nodes have names;
        UploadRunning.
    """
    if connection.dialect.name == "postgresql":
        # Danger: the lock below waits for all running charges, and all new charges wait for it. So
        # a replacement that is refused anyway must fail before it takes the lock.
        _require_unused(connection, dataset_id)
        # Waits for transactions that grant an allowance and have not committed yet, because the
        # check below would not see their accounts.
        connection.execute(text("LOCK TABLE budget_account IN SHARE ROW EXCLUSIVE MODE"))
    _require_unused(connection, dataset_id)
    versions.refuse(connection, REPLACED, _u.dataset_id == dataset_id, _u.lease_until <= now_us())
    running = exists().where(_u.dataset_id == dataset_id, _u.state == versions.PREPARING)
    if connection.execute(select(running)).scalar_one():
        raise UploadRunning("an upload to this dataset is still being prepared")
    delete_person_key(connection, dataset_id)
    values = {
        "description": json.dumps(description, ensure_ascii=False),
        "domain": None if domain is None else encode_domain(domain),
        "neighbouring": neighbouring.value,
        "records_per_person": records_per_person,
        "fixed_rows": domain.rows if isinstance(domain, TableDomain) else None,
        # The moment of the new description is later than that of the old one, even if the clock was
        # set back. Its change invalidates cached descriptions and running uploads.
        "created_us": _later(connection, dataset_id),
    }
    connection.execute(update(dataset).where(_d.id == dataset_id).values(values))
    change_cap(connection, dataset_id, cap, actor_id)


def _require_unused(connection: Connection, dataset_id: int) -> None:
    """Raises: AlreadyExists if somebody relies on the description. Holds the row of the dataset."""
    row = connection.execute(
        select(_d.version, _d.domain).where(_d.id == dataset_id).with_for_update()
    ).one()
    granted = exists().where(
        _a.dataset_id == dataset_id, _a.rank == int(AccountRank.ANALYST_ON_DATASET)
    )
    if connection.execute(select(granted)).scalar_one():
        raise AlreadyExists("an allowance was granted, so the description stays")
    if row.version:
        raise AlreadyExists("records are published: withdraw them first")
    if row.domain is not None and row.domain.endswith(LABELLED):
        raise AlreadyExists("the nodes have names, which stay")


def hold_description(connection: Connection, dataset_id: int) -> int:
    """The moment of the description, which no other transaction changes before this one ends."""
    moment = select(_d.created_us).where(_d.id == dataset_id).with_for_update()
    return int(connection.execute(moment).scalar_one())


def _later(connection: Connection, dataset_id: int) -> int:
    before = select(_d.created_us + 1, now_us()).where(_d.id == dataset_id)
    return max(map(int, connection.execute(before).one()))
