"""Refusals that come in bursts: many of one analyst within one hour.

Whoever probes for what they may not know is refused often. The counts stand beside the ledger.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from app.contract.times import moment
from storage.assurance.refusals import RefusalRow

#: So many refusals of one analyst in one hour are a burst.
BURST = 20


@dataclass(frozen=True)
class Burst:
    analyst: str
    hour: datetime
    refusals: int


def bursts(rows: Sequence[RefusalRow]) -> list[Burst]:
    """Hours of an analyst with at least ``BURST`` refusals of all types, the most first."""
    counts: Counter[tuple[str, int]] = Counter()
    for row in rows:
        counts[row.analyst, row.hour_us] += row.refusals
    return [
        Burst(analyst, moment(hour_us), refusals)
        for (analyst, hour_us), refusals in counts.most_common()
        if refusals >= BURST
    ]
