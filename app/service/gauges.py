"""Connects the gauges of the operator with the parts that they measure."""

import time

from app.engine.admission import InFlight
from app.engine.attempts import Attempts
from app.engine.opening import Opener
from app.engine.scheduler import Scheduler
from app.engine.verifying import Verifier
from app.telemetry.metrics import Metrics
from storage.assurance.publishing import Publisher
from storage.assurance.refusals import Refusals


def watch(
    metrics: Metrics,
    attempts: Attempts,
    in_flight: InFlight,
    scheduler: Scheduler,
    opener: Opener,
    refusals: Refusals,
    publisher: Publisher,
    verifier: Verifier,
) -> None:
    """Show the state of each part. All are read at a scrape, and none waits for a lock or disk."""

    def verification_age() -> float | None:
        latest = verifier.latest
        return None if latest is None else max(0.0, time.time() - latest.at_us / 1e6)

    def is_valid() -> float | None:
        if verifier.broke_off:
            return 0.0
        latest = verifier.latest
        return None if latest is None else float(latest.valid)

    def heads_age() -> float | None:
        looked = publisher.looked_at
        return None if looked is None else time.monotonic() - looked

    metrics.watch("versions_not_open", opener.missing)
    metrics.watch("deadlines_missed", lambda: attempts.misses)
    metrics.watch("queries_late", lambda: attempts.late)
    metrics.watch("queries_in_flight", lambda: in_flight.total)
    metrics.watch("queries_waiting", lambda: scheduler.waiting)
    metrics.watch("queries_refused", lambda: refusals.total)
    metrics.watch("accounts_frozen", lambda: publisher.frozen)
    metrics.watch("heads_age_seconds", heads_age)
    metrics.watch("verification_age_seconds", verification_age)
    metrics.watch("ledger_valid", is_valid)
