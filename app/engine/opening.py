"""Opens versions ahead of their queries: at start, after a publication, and on a public schedule.

Danger: how long a version takes to open depends on the size of its private files. So queries never
wait for it: until a version is open here they are refused free of charge. A version that this
process did not publish itself becomes visible at a multiple of a public interval.
"""

import math
import threading
import time
from collections.abc import Callable
from typing import Any

import structlog

from app.engine.background import Repeated
from storage.catalogue.record_versions import RecordVersions

log = structlog.get_logger("privypurse.opening")

#: The shortest period, in seconds, of the search for versions of records that must be opened or
#: closed.
LEAST = 0.25
#: The longest wait, in seconds, before a version of records that could not be opened is tried
#: again.
LONGEST = 600.0

Key = tuple[int, int]


class Opener:
    """Opens the versions that queries may read in one thread, and closes all others."""

    def __init__(self, versions: RecordVersions, interval: float) -> None:
        """``interval``: seconds between two searches, and between the instants at which versions
        become visible; 0 disables the wait for such an instant.
        """
        self._versions, self._interval = versions, interval
        self._period = max(interval, LEAST)
        self._repeated = Repeated("opening", self._period, self._search)
        #: For each version of records that could not be opened: how often it failed, and the time
        #: of the next try.
        self._failures: dict[Key, tuple[int, float]] = {}
        self._needed: frozenset[Key] = frozenset()
        self._ready_from: float | None = None
        self._closing = threading.Event()

    def start(self) -> None:
        """Begin the first search, which opens everything, in the background."""
        if not self._versions.needed():
            self._ready_from = time.monotonic()
        self._repeated.start()
        self._repeated.wake()

    def close(self) -> None:
        self._closing.set()
        self._repeated.close()

    def publish(self, dataset_id: int, version: int) -> None:
        """Open the version that this process has just prepared, checked and published.

        Queries may read it at once: the instant of the publication is public already. The bytes of
        other versions of the dataset were not checked, so the next search opens those.
        """
        for row in self._versions.needed(dataset_id):
            if row.version == version and not self._is_listed(row):
                self._try(row, visible_from=time.monotonic, checked=True)

    def is_ready(self) -> bool:
        """True once the first search is over and its versions are visible."""
        return self._ready_from is not None and self._ready_from <= time.monotonic()

    def missing(self) -> int:
        """The number of versions that queries need and that are not open here now."""
        opened = self._versions.opened
        return sum(opened.get(*key) is None for key in self._needed)

    def _search(self) -> None:
        if self._closing.is_set():
            return
        opened = self._versions.opened
        # Danger: the open versions of records must be listed before their rows in the database are
        # read. A version that is published in between would otherwise be listed and have no row,
        # and would be closed by mistake.
        listed = opened.listed()
        rows = self._versions.needed()
        self._needed = frozenset((row.id, row.version) for row in rows)
        for key in listed - self._needed:
            opened.forget(*key)
        opened.forget_removed()
        for key in self._failures.keys() - self._needed:
            self._failures.pop(key, None)
        for row in rows:
            if self._closing.is_set():
                return
            _, due = self._failures.get((row.id, row.version), (0, 0.0))
            if not self._is_listed(row) and due <= time.monotonic():
                self._try(row, visible_from=self._next_instant)
        if self._ready_from is None:
            self._ready_from = self._next_instant()

    def _try(self, row: Any, visible_from: Callable[[], float], checked: bool = False) -> None:
        key = (row.id, row.version)
        try:
            self._versions.open(row, visible_from=visible_from, checked=checked)
        except Exception as error:
            failures, _ = self._failures.get(key, (0, 0.0))
            wait = min(LONGEST, self._period * 2.0**failures)
            self._failures[key] = failures + 1, time.monotonic() + wait
            # Only the class of the error is logged: its text may quote records from a file.
            log.error(
                "a version cannot be opened: its queries are refused free of charge",
                dataset=row.id,
                version=row.version,
                error=type(error).__qualname__,
            )
        else:
            self._failures.pop(key, None)

    def _is_listed(self, row: Any) -> bool:
        return (row.id, row.version) in self._versions.opened.listed()

    def _next_instant(self) -> float:
        """The next multiple of the interval on the monotonic clock."""
        now = time.monotonic()
        return now if self._interval <= 0 else math.ceil(now / self._interval) * self._interval
