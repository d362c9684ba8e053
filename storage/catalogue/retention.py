"""The statements that say which files of a store the ledger still refers to.

Nothing else decides what may stay there. Functions work on a connection in a transaction.
"""

from __future__ import annotations

from hashlib import sha256

from sqlalchemy import Connection, select, update

from storage.catalogue.descriptions import LABELLED
from storage.catalogue.versions import INTERRUPTED, PREPARING, REFUSED, encode
from storage.database.expressions import now_us
from storage.database.tables import budget_account, dataset, dataset_version, upload, users
from storage.records.retention import References

#: An upload without a heartbeat for this long is never taken over.
LOST_US = 86_400 * 1_000_000

_d, _v, _u = dataset.c, dataset_version.c, upload.c


def read_references(connection: Connection) -> References | None:
    """Returns what the rows refer to; None while an account is frozen.

    A ledger that went backwards may have forgotten files until an operator accepts the rollback.
    """
    frozen = select(budget_account.c.id).where(budget_account.c.frozen == 1).limit(1)
    if connection.execute(frozen).first() is not None:
        return None
    # Uploads first: PostgreSQL shows each statement what was committed before it. One that is over
    # by now has its version seen below; read last, it could be missing from both.
    uploads = select(_u.id).where(_u.state == PREPARING)
    under_way = frozenset(connection.execute(uploads).scalars())
    versions = select(_v.folder).where(_v.folder.is_not(None), _v.removed_us.is_(None))
    nodes = select(_d.nodes_folder).where(_d.nodes_folder.is_not(None))
    return References(
        frozenset(connection.execute(versions).scalars()),
        frozenset(connection.execute(nodes).scalars()),
        under_way,
    )


def read_versions(connection: Connection) -> list[tuple[str, int, str | None]]:
    """The versions that queries read: (dataset, version, folder), by name.

    One that was published to a data folder has none in a store.
    """
    read = (
        select(_d.name, _v.version, _v.folder)
        .join_from(dataset, dataset_version, (_v.dataset_id == _d.id) & (_v.version == _d.version))
        .order_by(_d.name)
    )
    return [(row.name, row.version, row.folder) for row in connection.execute(read)]


def named_graphs(connection: Connection) -> list[tuple[str, str | None]]:
    """The graphs whose nodes have names: (dataset, folder of the list), by name; as above."""
    named = select(_d.name, _d.nodes_folder).where(_d.domain.endswith(LABELLED)).order_by(_d.name)
    return [(row.name, row.nodes_folder) for row in connection.execute(named)]


def end_lost_uploads(connection: Connection) -> None:
    """Refuses uploads whose lease expired a day ago, so that their files may be removed."""
    connection.execute(
        update(upload)
        .where(_u.state == PREPARING, _u.lease_until <= now_us() - LOST_US)
        .values(state=REFUSED, detail=encode(INTERRUPTED))
    )


def ledger_name(connection: Connection) -> str:
    """A name that no other ledger has: a digest of its first user, who is never deleted."""
    first = select(users.c.name, users.c.created_us).order_by(users.c.id).limit(1)
    return sha256(repr(tuple(connection.execute(first).one())).encode()).hexdigest()
