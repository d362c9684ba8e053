"""An LRU cache of open versions.

Opening a version takes a hundred times as long as the cheapest query. A published version never
changes, so its arrays may be shared by all readers; they are mapped, not copied into memory.
"""

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from mechanisms.model.domains import Domain
from mechanisms.model.records import Records
from storage.files.arrays import MANIFEST
from storage.records.data_folder import Files
from storage.records.preparation import open_records

#: Datasets whose arrays stay mapped; the least recently used is closed first.
MOST = 64


class _OpenVersion(NamedTuple):
    version: int
    records: Records
    folder: Path


class OpenRecords:
    """The records of the latest version of each dataset; safe to share between threads."""

    def __init__(
        self, files: Files, where: Callable[[int, int], str | None] = lambda _, __: None
    ) -> None:
        """``where``: returns the folder in an object store of a dataset id and a version."""
        self._files, self._where = files, where
        self._open: OrderedDict[int, _OpenVersion] = OrderedDict()
        self._lock = threading.Lock()
        files.close_idle(self.close_one)

    def get(self, dataset_id: int, version: int, domain: Domain) -> Records:
        """The private records of a published version, for a charged query.

        Raises: FileNotFoundError; DamagedFolder if the folder does not fit the domain.
        """
        with self._lock:
            entry = self._open.get(dataset_id)
            if entry is not None and entry.version == version:
                self._open.move_to_end(dataset_id)
                return entry.records
        where = partial(self._where, dataset_id, version)
        with self._files.version(dataset_id, version, where) as folder:
            records = open_records(folder, domain)
            self._files.shared.hold(folder, records)
        with self._lock:
            entry = self._open.get(dataset_id)
            # A query that began before an upload may get here after the upload. Its older version
            # must not replace the newer one.
            if entry is None or entry.version < version:
                self._open[dataset_id] = _OpenVersion(version, records, folder)
                self._open.move_to_end(dataset_id)
                if len(self._open) > MOST:
                    self._open.popitem(last=False)
        return records

    def has(self, dataset_id: int, version: int) -> bool:
        """True if the version is open, so that ``get`` does not block."""
        entry = self._open.get(dataset_id)
        return entry is not None and entry.version == version

    def forget(self, dataset_id: int, version: int) -> None:
        """Close a version. Call it before removing files: a disk frees only files not mapped."""
        with self._lock:
            if self.has(dataset_id, version):
                del self._open[dataset_id]

    def close_one(self) -> bool:
        """Close the least recently used version that no query is reading.

        Returns False if there is none. A weak reference detects whether a query uses the records.
        """
        in_use: list[tuple[int, _OpenVersion]] = []
        with self._lock:
            try:
                for dataset_id in list(self._open):
                    version, records, folder = self._open.pop(dataset_id)
                    reference = weakref.ref(records)
                    del records
                    alive = reference()
                    if alive is None:
                        return True
                    in_use.append((dataset_id, _OpenVersion(version, alive, folder)))
                return False
            finally:
                for dataset_id, entry in reversed(in_use):
                    self._open[dataset_id] = entry
                    self._open.move_to_end(dataset_id, last=False)

    def forget_gone(self) -> None:
        """Close the versions whose files were removed, by this process or another."""
        with self._lock:
            entries = list(self._open.items())
        # The disk is read outside the lock, because queries must not wait for it.
        gone = [(id, entry) for id, entry in entries if not (entry.folder / MANIFEST).exists()]
        with self._lock:
            for dataset_id, entry in gone:
                if self._open.get(dataset_id) is entry:
                    del self._open[dataset_id]
