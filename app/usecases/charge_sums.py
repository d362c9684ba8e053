"""Sums of an account's charges by hour, day, kind and mechanism, read once and then continued.

The entries of an account never change, so the sums up to one entry never change either. They are
kept in memory with the number of that entry, and a request reads only later entries. A crash loses
nothing but the memory. After a start one request would read a whole history, so each request stops
after ``SECONDS`` and is refused; the next one continues where it stopped.
"""

from __future__ import annotations

import time
from collections import OrderedDict, defaultdict
from dataclasses import dataclass, field
from threading import Lock
from typing import Literal

from accounting.privacy_loss import PrivacyLoss
from app.contract.budgets import By, Point
from app.contract.errors import Busy
from app.contract.times import moment
from app.queries import QUERY_KINDS
from storage.database.database import Database
from storage.ledger.accounts import AccountRow
from storage.queries.charges import ChargeRow, charges_between

#: The number of entries that one SQL statement reads.
PAGE = 1000
#: Seconds after which a request stops reading entries and is refused; the next one continues.
SECONDS = 1.0
#: The sums of this many accounts stay in memory; the least recently used ones are evicted.
ACCOUNTS = 1024


#: Charges are added up by day, by query kind and by mechanism (``By``), and also by hour (UTC,
#: ``YYYY-MM-DDTHH``) for a chart of few days.
Grain = By | Literal["hour"]
GRAINS: tuple[Grain, ...] = ("hour", "day", "kind", "mechanism")


@dataclass
class Sum:
    """The number of queries with one label, and what was charged for them."""

    queries: int = 0
    charged: PrivacyLoss = field(default_factory=lambda: PrivacyLoss(0))


@dataclass
class Sums:
    """The sums of one account up to and with the entry ``seq``; one thread at a time adds to it."""

    seq: int = 0
    of: dict[Grain, dict[str, Sum]] = field(
        default_factory=lambda: {by: defaultdict(Sum) for by in GRAINS}
    )
    lock: Lock = field(default_factory=Lock)

    def add(self, row: ChargeRow) -> None:
        """Add one charge, or take it away again if it was released."""
        for by, label in _labels(row).items():
            one = self.of[by][label]
            if row.is_release:
                one.queries, one.charged = one.queries - 1, one.charged - row.charge
            else:
                one.queries, one.charged = one.queries + 1, one.charged + row.charge
        self.seq = row.seq


class ChargeSums:
    """The sums of many accounts; safe to share between threads."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sums: OrderedDict[int, Sums] = OrderedDict()
        self._lock = Lock()

    def points(self, account: AccountRow, by: Grain) -> list[Point]:
        """The sums of an account at its present entry: the latest hour or day first, or by name.

        Raises: Busy if more than ``SECONDS`` of entries are new, or another thread reads them.
        """
        sums = self._of(account)
        if not sums.lock.acquire(timeout=SECONDS):
            raise Busy
        try:
            self._continue(sums, account)
            labels = sums.of[by]
            return [
                Point(
                    label=label,
                    queries=labels[label].queries,
                    charged=labels[label].charged,
                    counts_rho=account.account.limit.has_rho,
                )
                for label in sorted(labels, reverse=by in ("hour", "day"))
                if labels[label].queries
            ]
        finally:
            sums.lock.release()

    def _of(self, account: AccountRow) -> Sums:
        with self._lock:
            sums = self._sums.get(account.id)
            # An account with fewer entries than the sums have counted was restored from a backup,
            # so the counting begins anew.
            if sums is None or sums.seq > account.seq:
                sums = self._sums[account.id] = Sums()
            self._sums.move_to_end(account.id)
            if len(self._sums) > ACCOUNTS:
                self._sums.popitem(last=False)
        return sums

    def _continue(self, sums: Sums, account: AccountRow) -> None:
        """Add the entries up to the present one. Raises: Busy when the time is over."""
        stop = time.monotonic() + SECONDS
        while sums.seq < account.seq:
            rows = charges_between(self._database, account.id, sums.seq, account.seq, PAGE)
            for row in rows:
                sums.add(row)
            if len(rows) < PAGE:
                # The statement returns only charges and releases, and these were the last. The
                # entries after them are of other kinds, such as changes of a limit, and need not be
                # read.
                sums.seq = account.seq
            elif time.monotonic() >= stop:
                raise Busy


def _labels(row: ChargeRow) -> dict[Grain, str]:
    query, hour = row.request["query"], moment(row.created_us).isoformat()[:13]
    return {
        "hour": hour,
        "day": hour[:10],
        "kind": str(query["kind"]),
        "mechanism": QUERY_KINDS[query["kind"]].how(query, row.neighbouring),
    }
