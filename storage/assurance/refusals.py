"""Counts refused queries per analyst, dataset, problem type and hour, outside the ledger.

A refusal must not cost a write, so it is counted in memory and written later. A crash loses the
counts of a few seconds and nothing else.
"""

import threading
from collections import Counter
from dataclasses import dataclass

from sqlalchemy import Connection, select
from sqlalchemy.dialects import postgresql, sqlite

from storage.database.database import Database
from storage.database.tables import refusal, users

HOUR_US = 3_600 * 1_000_000
#: The most combinations of analyst, dataset and problem type in memory. When they are so many,
#: refusals of further combinations go uncounted until the counts are next written.
MOST = 10_000

_r = refusal.c


@dataclass(frozen=True, slots=True)
class RefusalRow:
    """The number of refusals of one ``type`` within the hour that begins at ``hour_us``."""

    analyst: str
    dataset: str
    type: str
    hour_us: int
    refusals: int


class Refusals:
    """The counters of one process; safe to share between threads."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._counts: Counter[tuple[int, str, str]] = Counter()
        #: The number of all refusals in this process, also of those that are left out of the counts
        #: because of ``MOST``.
        self.total = 0
        self._lock = threading.Lock()

    def count(self, analyst_id: int, dataset: str, type: str) -> None:
        """Count one refusal in memory. ``dataset`` is "" if the analyst may not see the dataset."""
        key = (analyst_id, dataset, type)
        with self._lock:
            self.total += 1
            if len(self._counts) < MOST or key in self._counts:
                self._counts[key] += 1

    def write(self) -> None:
        """Add the counts since the last call to the database.

        Raises: Busy; then the counts stay in memory.
        """
        with self._lock:
            counts, self._counts = self._counts, Counter()
        if not counts:
            return
        try:
            hour_us = self._database.now_us() // HOUR_US * HOUR_US
            self._database.write(lambda connection: _add(connection, counts, hour_us))
        except BaseException:
            with self._lock:
                self._counts.update(counts)
            raise

    def since(self, hour_us: int) -> list[RefusalRow]:
        """The counts of the hours that begin at ``hour_us`` or later, the latest hour first."""
        statement = (
            select(users.c.name, _r.dataset, _r.type, _r.hour_us, _r.refusals)
            .join_from(refusal, users, users.c.id == _r.analyst_id)
            .where(_r.hour_us >= hour_us)
            .order_by(_r.hour_us.desc(), users.c.name, _r.dataset, _r.type)
        )
        with self._database.read() as connection:
            return [RefusalRow(*row) for row in connection.execute(statement)]


def _add(connection: Connection, counts: Counter[tuple[int, str, str]], hour_us: int) -> None:
    make = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    added = make(refusal)
    key = ["analyst_id", "dataset", "type", "hour_us"]
    more = {"refusals": _r.refusals + added.excluded.refusals}
    statement = added.on_conflict_do_update(index_elements=key, set_=more)
    # Sorted by key: concurrent processes write rows in one order and cannot deadlock.
    for counted, number in sorted(counts.items()):
        row = dict(zip(key, (*counted, hour_us), strict=True))
        connection.execute(statement, {**row, "refusals": number})
