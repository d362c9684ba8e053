"""Facts of the journal about datasets and their versions: what the rows say after a change.

Every function raises the dataset's revision in the transaction of the change, so the row's lock
orders the facts of different streams.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, select, update

from storage.database.adopted import COLUMNS
from storage.database.tables import dataset, dataset_version
from storage.journal.facts import FactKind, changed, number_subject
from storage.journal.streams import record

_d, _v = dataset.c, dataset_version.c


def record_dataset(
    connection: Connection,
    actor_id: int,
    dataset_id: int,
    action: str,
    detail: Mapping[str, Any],
    *,
    nodes: bytes | None = None,
    in_trail: bool = True,
) -> None:
    """Records a change of a dataset.

    Args:
        detail: shown in the audit trail: public facts alone.
        nodes: the digest of the node list, if this change has written one.
        in_trail: whether the audit trail shows a line.
    """
    kind = FactKind.DATASET if in_trail else FactKind.UNTOLD_DATASET
    row = _raised(connection, dataset_id)
    state = dataset_state(row)
    if nodes is not None:
        state["nodes"] = nodes
    subject = number_subject(dataset_id)
    fact = changed(kind, subject, actor_id, action, row.name, detail, state, row.revision)
    record(connection, fact)


def record_version(
    connection: Connection, actor_id: int, dataset_id: int, version: int, action: str
) -> None:
    """Records that a version is ready, or that its arrays are removed. No page shows it."""
    row = _raised(connection, dataset_id)
    versions = select(dataset_version).where(_v.dataset_id == dataset_id, _v.version == version)
    state = version_state(connection.execute(versions).one())
    subject, detail = number_subject(dataset_id), {"version": version}
    kind = FactKind.UNTOLD_VERSION
    fact = changed(kind, subject, actor_id, action, row.name, detail, state, row.revision)
    record(connection, fact)


def dataset_state(row: Any) -> dict[str, Any]:
    """What the fact of a dataset's last change says, without its nodes.

    Texts may be megabytes, so the fact has their digests. Both are public descriptions.
    """
    state = {name: getattr(row, name) for name in COLUMNS["dataset"]}
    for name in ("description", "domain"):
        if state[name] is not None:
            state[name] = sha256(state[name].encode()).hexdigest()
    return state


def version_state(row: Any) -> dict[str, Any]:
    """What the fact of a version's last change says; ``row`` is of ``dataset_version``."""
    state = {name: getattr(row, name) for name in COLUMNS["dataset_version"]}
    return {**state, "manifest_digest": row.manifest_digest}


def digest_of_labels(labels: Sequence[int] | Sequence[str]) -> bytes:
    """The digest of a node list, 32 bytes. Node names are public, so it has no salt."""
    whole = sha256()
    for label in labels:
        text = str(label).encode()
        whole.update(len(text).to_bytes(4, "big") + text)
    return whole.digest()


def _raised(connection: Connection, dataset_id: int) -> Any:
    raised = update(dataset).where(_d.id == dataset_id).values(revision=_d.revision + 1)
    return connection.execute(raised.returning(dataset)).one()
