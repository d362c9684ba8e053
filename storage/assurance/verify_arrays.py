"""The part of a verification that reads files: prepared arrays and node lists, by their digests.

The manifest of a version lists a salted digest of each of its files, and the row of the version
has the digest of the manifest, which a fact of the journal states. The digest of a node list is in
the fact of its registration.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Select, select

from storage.assurance.verify_chains import Bad
from storage.catalogue.dataset_states import digest_of_labels
from storage.catalogue.versions import needed_versions
from storage.database.database import Database
from storage.database.tables import journal
from storage.files.manifest import DamagedFolder, check_files
from storage.journal.facts import FIRST_CHANGE, FactKind
from storage.records.data_folder import Files

_j = journal.c
#: All facts about datasets, oldest first. For each dataset with a node list, one of them states the
#: digest of that list.
_DATASETS: Select[Any] = (
    select(_j.subject, _j.fact)
    .where(
        _j.kind >= FIRST_CHANGE, _j.kind.in_((int(FactKind.DATASET), int(FactKind.UNTOLD_DATASET)))
    )
    .order_by(_j.at_us, _j.stream, _j.seq)
)


@dataclass(frozen=True, slots=True)
class ArraysVerified:
    """The versions whose arrays were compared, their bytes, and the seconds that it took.

    ``unknown``: versions of earlier releases, which have no digests yet.
    """

    versions: int
    unknown: int
    bytes: int
    seconds: float
    first_bad: Bad | None


def verify_arrays(database: Database, files: Files) -> ArraysVerified:
    """Compare the arrays that queries may read, and node lists; services may run meanwhile."""
    began, compared, unknown, size = time.monotonic(), 0, 0, 0
    with database.read() as connection:
        versions, nodes = needed_versions(connection), _stated_nodes(connection)
    bad = _check_nodes(files, nodes)
    for row in versions if bad is None else ():
        if row.manifest_digest is None:
            unknown += 1
            continue
        folder = files.version_folder(row.id, row.version)
        if reason := _contradiction(folder, row.manifest_digest):
            # A running service may have removed the version meanwhile, which is no fault.
            with database.read() as connection:
                needed = {(one.id, one.version) for one in needed_versions(connection, row.id)}
            if (row.id, row.version) in needed:
                bad = Bad("dataset_version", f"dataset {row.id}, version {row.version}", reason)
                break
            continue
        compared += 1
        size += sum(path.stat().st_size for path in folder.iterdir())
    return ArraysVerified(compared, unknown, size, time.monotonic() - began, bad)


def _contradiction(folder: Path, digest: bytes) -> str | None:
    """What is wrong with the arrays of a version, in words, or None."""
    try:
        same = check_files(folder) == digest
    except (OSError, DamagedFolder) as error:
        return f"its prepared arrays cannot be used: {error}"
    return None if same else "has another manifest than the journal states"


def _stated_nodes(connection: Connection) -> Mapping[int, str]:
    """The digest of the node list of each dataset whose facts state one, in hexadecimal."""
    digests = {}
    for subject, text in connection.execute(_DATASETS):
        nodes = json.loads(text)["state"].get("nodes")
        if nodes is not None:
            digests[int.from_bytes(subject, "big", signed=True)] = nodes
    return digests


def _check_nodes(files: Files, digests: Mapping[int, str]) -> Bad | None:
    """The first dataset with another node list than its facts state, or None."""
    for id, digest in digests.items():
        try:
            same = digest_of_labels(files.labels(id)).hex() == digest
        except (OSError, DamagedFolder, ValueError) as error:
            return Bad("dataset", f"dataset {id}", f"its node list cannot be used: {error}")
        if not same:
            return Bad("dataset", f"dataset {id}", "has another node list than the journal states")
    return None
