"""Prepared versions that stay open between queries.

Opening one takes a hundred times what the cheapest query takes. A published version never changes,
so its arrays may be shared by all who read them; they are mapped, not held in memory.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from pathlib import Path

from mechanisms.model.domains import Domain
from mechanisms.model.records import Records
from storage.files.arrays import MANIFEST
from storage.records.data_folder import Files
from storage.records.preparation import open_records

#: Datasets whose arrays stay mapped; the one that was not asked for longest is closed first.
MOST = 64


class OpenRecords:
    """The records of the latest version of each dataset; safe to share between threads."""

    def __init__(
        self, files: Files, where: Callable[[int, int], str | None] = lambda _, __: None
    ) -> None:
        """``where``: the folder of a dataset's version in a store."""
        self._files, self._where = files, where
        self._open: OrderedDict[int, tuple[int, Records, Path]] = OrderedDict()
        self._lock = threading.Lock()
        files.close_idle(self.close_one)

    def get(self, dataset_id: int, version: int, domain: Domain) -> Records:
        """The records of a published version. Raises: as ``open_records``."""
        with self._lock:
            known = self._open.get(dataset_id)
            if known is not None and known[0] == version:
                self._open.move_to_end(dataset_id)
                return known[1]
        where = partial(self._where, dataset_id, version)
        with self._files.version(dataset_id, version, where) as folder:
            records = open_records(folder, domain)
            self._files.shared.hold(folder, records)
        with self._lock:
            known = self._open.get(dataset_id)
            # A query that began before an upload may come late: it must not displace the newer.
            if known is None or known[0] < version:
                self._open[dataset_id] = version, records, folder
                self._open.move_to_end(dataset_id)
                if len(self._open) > MOST:
                    self._open.popitem(last=False)
        return records

    def has(self, dataset_id: int, version: int) -> bool:
        """Whether the version is open."""
        known = self._open.get(dataset_id)
        return known is not None and known[0] == version

    def forget(self, dataset_id: int, version: int) -> None:
        """Close a version that is to be removed: a disk gives room back when nobody maps a file."""
        with self._lock:
            known = self._open.get(dataset_id)
            if known is not None and known[0] == version:
                del self._open[dataset_id]

    def close_one(self) -> bool:
        """Close the version that was asked for least recently, of those that no query is reading.

        False when there is none: a query has its records, which so outlive their place here.
        """
        in_use: list[tuple[int, tuple[int, Records, Path]]] = []
        with self._lock:
            try:
                for dataset_id in list(self._open):
                    version, records, folder = self._open.pop(dataset_id)
                    alive = weakref.ref(records)
                    del records
                    still = alive()
                    if still is None:
                        return True
                    in_use.append((dataset_id, (version, still, folder)))
                return False
            finally:
                for dataset_id, known in reversed(in_use):
                    self._open[dataset_id] = known
                    self._open.move_to_end(dataset_id, last=False)

    def forget_gone(self) -> None:
        """Close what another process has removed, or what was removed on this machine."""
        with self._lock:
            open_now = list(self._open.items())
        # Asked outside the lock: queries do not wait for a disk.
        gone = [(id, known) for id, known in open_now if not (known[2] / MANIFEST).exists()]
        with self._lock:
            for dataset_id, known in gone:
                if self._open.get(dataset_id) is known:
                    del self._open[dataset_id]
