"""The part of a verification that reads prepared arrays, and compares them with their digests.

The manifest of a version lists a salted digest of each of its files, and the row of the version
has the digest of the manifest, which a fact of the journal states.
"""

import time
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, select

from storage.assurance.verify_chains import Bad
from storage.database.database import Database
from storage.database.tables import dataset_version
from storage.files.manifest import DamagedFolder, check_files, is_without_digests
from storage.records.data_folder import Files

_v = dataset_version.c
_VERSIONS: Select[Any] = (
    select(_v.dataset_id, _v.version, _v.manifest_digest)
    .where(_v.removed_us.is_(None))
    .order_by(_v.dataset_id, _v.version)
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
    """Compare every array in the data folder with its digest; services may run meanwhile."""
    began, compared, unknown, size = time.monotonic(), 0, 0, 0
    bad = None
    with database.read() as connection:
        versions = connection.execute(_VERSIONS).all()
    for dataset_id, version, digest in versions:
        folder = files.version_folder(dataset_id, version)
        try:
            if is_without_digests(folder):
                unknown += 1
                continue
            actual, reason = check_files(folder), "has another manifest than the journal states"
        except (OSError, DamagedFolder) as error:
            actual, reason = b"", f"its prepared arrays cannot be used: {error}"
        if digest not in (None, actual) or not actual:
            # A service may have removed the version meanwhile.
            if _exists(database, dataset_id, version):
                bad = Bad("dataset_version", f"dataset {dataset_id}, version {version}", reason)
                break
            continue
        compared += 1
        size += sum(path.stat().st_size for path in folder.iterdir())
    return ArraysVerified(compared, unknown, size, time.monotonic() - began, bad)


def _exists(database: Database, dataset_id: int, version: int) -> bool:
    this = _VERSIONS.where(_v.dataset_id == dataset_id, _v.version == version)
    with database.read() as connection:
        return connection.execute(this).first() is not None
