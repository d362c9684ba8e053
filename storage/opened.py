"""Prepared versions that stay open between queries.

Opening one takes a hundred times what the cheapest query takes. A published version never changes,
so its arrays may be shared by all who read them; they are mapped, not held in memory.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path

from mechanisms.domains import Domain
from mechanisms.records import Records
from storage.files import Files
from storage.preparation import open_records

#: Datasets whose arrays stay mapped; the one that was not asked for longest is closed first.
MOST = 64


class OpenRecords:
    """The records of the latest version of each dataset; safe to share between threads."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._open: OrderedDict[int, tuple[int, Records, Path]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, dataset_id: int, version: int, domain: Domain) -> Records:
        """The records of a published version. Raises: as ``open_records``."""
        with self._lock:
            known = self._open.get(dataset_id)
            if known is not None and known[0] == version:
                self._open.move_to_end(dataset_id)
                return known[1]
        with self._files.version(dataset_id, version) as folder:
            records = open_records(folder, domain)
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

    def forget_gone(self) -> None:
        """Close what another process has removed, or what made room on this machine."""
        with self._lock:
            for dataset_id, (_, _, folder) in list(self._open.items()):
                if not folder.exists():
                    del self._open[dataset_id]
