"""Reads from the ledger which files of an object store must stay; a sweep removes the others.

Functions work on a connection in a transaction.
"""

from hashlib import sha256

from sqlalchemy import Connection, select

from storage.catalogue.descriptions import LABELLED
from storage.catalogue.versions import INTERRUPTED, PREPARING, refuse
from storage.database.expressions import now_us
from storage.database.tables import budget_account, dataset, dataset_version, upload, users
from storage.records.retention import References

#: Microseconds from the end of an upload's lease until the upload is refused for good. Until then
#: another process may resume it.
LOST_US = 86_400 * 1_000_000

_d, _v, _u = dataset.c, dataset_version.c, upload.c


def read_references(connection: Connection) -> References | None:
    """The files that rows name; None while an account is frozen.

    A frozen account means that the ledger lost entries. It may then also lack the rows of files.
    """
    frozen = select(budget_account.c.id).where(budget_account.c.frozen == 1).limit(1)
    if connection.execute(frozen).first() is not None:
        return None
    # Danger: uploads must be read before versions. On PostgreSQL each statement sees all earlier
    # commits, so an upload that ends between the two has its version in the second result. In the
    # other order both could lack it, and a sweep would delete its files.
    uploads = select(_u.id).where(_u.state == PREPARING)
    running = frozenset(connection.execute(uploads).scalars())
    versions = select(_v.folder).where(_v.folder.is_not(None), _v.removed_us.is_(None))
    nodes = select(_d.nodes_folder).where(_d.nodes_folder.is_not(None))
    return References(
        frozenset(connection.execute(versions).scalars()),
        frozenset(connection.execute(nodes).scalars()),
        running,
    )


def read_folders(connection: Connection) -> dict[str, str | None]:
    """The folder in the store of each current version and node list, by its description in words.

    None stands for a version or a node list that is in a data folder and not in a store.
    """
    is_current = (_v.dataset_id == _d.id) & (_v.version == _d.version)
    versions = select(_d.name, _v.version, _v.folder).join_from(
        dataset, dataset_version, is_current
    )
    graphs = select(_d.name, _d.nodes_folder).where(_d.domain.endswith(LABELLED))
    folders = {
        f"version {number} of {name}": folder and f"arrays/{folder}"
        for name, number, folder in connection.execute(versions.order_by(_d.name))
    }
    return folders | {
        f"the node list of {name}": folder and f"nodes/{folder}"
        for name, folder in connection.execute(graphs.order_by(_d.name))
    }


def end_lost_uploads(connection: Connection) -> None:
    """Refuses uploads whose lease expired a day ago, so that their files may be removed."""
    refuse(connection, INTERRUPTED, _u.lease_until <= now_us() - LOST_US)


def ledger_name(connection: Connection) -> str:
    """A name that no other ledger has: a digest of its first user, who is never deleted."""
    first = select(users.c.name, users.c.created_us).order_by(users.c.id).limit(1)
    return sha256(repr(tuple(connection.execute(first).one())).encode()).hexdigest()
