"""Counts of refused queries by analyst, dataset, problem type and hour, kept beside the ledger.

An analyst who probes for secrets is refused often, so auditors see bursts of refusals.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from accounting.errors import AccountFrozen, BudgetExhausted, CapExhausted
from app.contract.errors import Busy, RateLimited, UnsupportedQuery
from app.contract.problems import problem_type
from app.contract.times import moment
from app.identity.callers import Caller
from app.usecases.services import Services
from app.usecases.visibility import require
from storage.assurance.refusals import HOUR_US, RefusalRow
from storage.errors import NoRecords, QueryReleased, StillRunning

#: This many refusals of one analyst in one hour are shown as a burst.
BURST = 20
#: Refusals that reach only callers who may see the dataset. These alone are counted under its name:
#: in any other refusal the name may be a guess.
AFTER_VISIBLE = (
    UnsupportedQuery,
    NoRecords,
    RateLimited,
    Busy,
    BudgetExhausted,
    CapExhausted,
    AccountFrozen,
    # Only who sends the request of a stored query again, under its key, gets one of these two.
    StillRunning,
    QueryReleased,
)


@dataclass(frozen=True)
class Burst:
    """At least ``BURST`` refusals of one analyst in the hour from ``hour``."""

    analyst: str
    hour: datetime
    refusals: int


def count(services: Services, caller: Caller, dataset: str, error: Exception) -> None:
    """Count the refusal ``error`` of the caller's query, if the table of problems has its type."""
    kind = problem_type(error)
    if kind is not None:
        name = dataset if isinstance(error, AFTER_VISIBLE) else ""
        services.refusals.count(caller.id, name, kind.slug)


def latest(services: Services, caller: Caller, days: int) -> list[RefusalRow]:
    """The refusals of the last ``days`` days, this hour included."""
    require(caller, "auditor")
    hour_us = services.database.now_us() // HOUR_US * HOUR_US
    with services.reads.slot(caller.id):
        return services.refusals.since(hour_us - (days * 24 - 1) * HOUR_US)


def bursts(counts: Sequence[RefusalRow]) -> list[Burst]:
    """The hours in which one analyst had at least ``BURST`` refusals, most refusals first."""
    sums: Counter[tuple[str, int]] = Counter()
    for one in counts:
        sums[one.analyst, one.hour_us] += one.refusals
    return [
        Burst(analyst, moment(hour_us), refusals)
        for (analyst, hour_us), refusals in sums.most_common()
        if refusals >= BURST
    ]
