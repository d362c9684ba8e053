"""The open versions of this process. The service opens them; queries only read this table.

Danger: a query must not open, fetch or evict anything, because its time and its failures would then
depend on files of private size. So a version is opened ahead of its queries, and stays open until
the service closes it. A published version never changes, so all its readers share its arrays, which
are mapped and not copied into memory.
"""

import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from mechanisms.model.domains import Domain
from mechanisms.model.records import Records
from storage.files.manifest import (
    MANIFEST,
    DamagedFolder,
    check_files,
    is_without_digests,
    manifest_digest,
)
from storage.records.data_folder import Files
from storage.records.preparation import open_records

#: The key of a version: the id of the dataset and the number of the version.
VersionKey = tuple[int, int]


class _OpenVersion(NamedTuple):
    records: Records
    folder: Path
    manifest: bytes
    #: The instant of the monotonic clock, in seconds, from which queries may read the version. If
    #: this process published the version, it is the publication, which everyone sees anyway.
    #: Danger: the time to open a version that another process published depends on its records. It
    #: becomes visible at the next multiple of a public interval, so that this time does not show.
    visible_from: float


class OpenRecords:
    """The records of all open versions; safe to share between threads."""

    def __init__(
        self, files: Files, where: Callable[[int, int], str | None] = lambda _, __: None
    ) -> None:
        """``where``: returns the folder in an object store of a dataset id and a version."""
        self._files, self._where = files, where
        self._open: dict[VersionKey, _OpenVersion] = {}
        self._lock = threading.Lock()

    def get(self, dataset_id: int, version: int) -> Records | None:
        """The private records of a version; None if it is not open here now. Does not block."""
        entry = self._open.get((dataset_id, version))
        if entry is None or entry.visible_from > time.monotonic():
            return None
        return entry.records

    def open(
        self,
        dataset_id: int,
        version: int,
        domain: Domain,
        *,
        visible_from: Callable[[], float] = time.monotonic,
        checked: bool = False,
        expected: bytes | None = None,
    ) -> None:
        """Map a version, and compare every byte with its digest. Never called by a query.

        ``visible_from`` is called at the end, and returns the instant of the monotonic clock from
        which ``get`` returns the records. ``checked``: the caller has just compared the bytes.
        ``expected``: the digest of the manifest that was published, if it is known.
        Raises: FileNotFoundError; OSError; StoreFailed; DamagedFolder if the files differ from
            their digests or do not fit the domain.
        """
        if (dataset_id, version) in self._open:
            return
        where = partial(self._where, dataset_id, version)
        with self._files.version(dataset_id, version, where) as folder:
            if is_without_digests(folder):
                self._files.adopt(folder)
        with self._files.version(dataset_id, version, where) as folder:
            manifest = manifest_digest(folder) if checked else check_files(folder)
            if expected not in (None, manifest):
                raise DamagedFolder("the manifest is not the one that was published")
            records = open_records(folder, domain)
            self._files.shared.hold(folder, records)
        with self._lock:
            entry = _OpenVersion(records, folder, manifest, visible_from())
            self._open.setdefault((dataset_id, version), entry)

    def manifest(self, dataset_id: int, version: int) -> bytes:
        """The digest of the manifest of an open version. Raises: KeyError if it is not open."""
        return self._open[dataset_id, version].manifest

    def listed(self) -> frozenset[VersionKey]:
        """The versions that were opened, also those that queries may not read yet."""
        with self._lock:
            return frozenset(self._open)

    def forget(self, dataset_id: int, version: int) -> None:
        """Close a version. A query that reads its records keeps them mapped until its end."""
        with self._lock:
            self._open.pop((dataset_id, version), None)

    def forget_removed(self) -> None:
        """Close the versions whose files were removed, by this process or another."""
        with self._lock:
            entries = list(self._open.items())
        # The disk is read outside the lock, because queries must not wait for a slow disk.
        for key, entry in entries:
            if not (entry.folder / MANIFEST).exists():
                self.forget(*key)
