"""Metrics for the operator: requests by route and status, and their durations.

All datasets are counted together, and each request when its reply leaves. A paid query therefore
counts at its public deadline. Memory, processor time and run times of kernels depend on
records. So there are no durations of uploads, and none of the usual process metrics.
"""

import time
from collections.abc import Callable
from functools import cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from app import __version__

MEDIA_TYPE = CONTENT_TYPE_LATEST

#: The gauges and their texts. Each follows from public instants, from load, or from the ledger:
#: a query counts until its deadline, whenever its work ends.
GAUGES = {
    "versions_not_open": "Versions that queries need and that are not open in this process.",
    "deadlines_missed": "Deadlines that queries of this process have missed: it is too slow.",
    "queries_in_flight": "Queries between their charge and their deadline.",
    "queries_waiting": "Charged queries of this process that have not begun.",
    "queries_refused": "Refused queries since the start of this process.",
    "accounts_frozen": "Accounts that take no charge because their entries went back.",
    "heads_age_seconds": "Seconds since the accounts were last compared with published heads.",
    "verification_age_seconds": "Seconds since the last verification of the ledger began.",
    "ledger_valid": "1 if the last verification found no fault, else 0.",
    "sources_failing": "Sources of records whose last read here failed, in the last hour.",
}
NAN = float("nan")
#: For so many seconds a failed read of a source counts.
REMEMBERED = 3600.0
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Metrics:
    """The counters of one application; each application has its own registry."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "privypurse_requests",
            "Replies sent, by method, route template and status.",
            ["method", "route", "status"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "privypurse_request_seconds",
            "Seconds until the reply left, by route template.",
            ["route"],
            registry=self._registry,
        )
        # These caches save the library's validation of labels at every call. Label values are
        # templates, verbs and statuses, so the caches stay small.
        self._replies = cache(
            lambda verb, route, status: self._requests.labels(verb, route, str(status or "aborted"))
        )
        self._durations = cache(self._seconds.labels)
        self._gauges = {
            name: Gauge(f"privypurse_{name}", text, registry=self._registry)
            for name, text in GAUGES.items()
        }
        # They have no value before they are watched, and 0 would look like one.
        for gauge in self._gauges.values():
            gauge.set(NAN)
        self._failures: dict[str, float] = {}
        self.watch("sources_failing", self._failing)
        build = Info("privypurse_build", "The version that runs.", registry=self._registry)
        build.info({"version": __version__})

    def observe(self, method: str, route: str, status: int | None, seconds: float | None) -> None:
        """Count one reply; ``route`` is a template, so the number of series is bounded.

        ``seconds`` is None for a route whose durations follow records; they are not published.
        """
        verb = method if method in METHODS else "other"
        self._replies(verb, route, status).inc()
        if seconds is not None:
            self._durations(route).observe(seconds)

    def watch(self, gauge: str, read: Callable[[], float | None]) -> None:
        """Show the number that ``read`` returns in a gauge of ``GAUGES``; None is unknown.

        Danger: the number may change at public instants alone.
        """
        self._gauges[gauge].set_function(lambda: NAN if (number := read()) is None else number)

    def note_source(self, name: str, *, fails: bool) -> None:
        """Note whether the last read of a source failed. No metric names the source."""
        if fails:
            self._failures[name] = time.monotonic()
        else:
            self._failures.pop(name, None)

    def _failing(self) -> int:
        # Another process may have read the source since, so a failure counts for an hour.
        since = time.monotonic() - REMEMBERED
        return sum(at > since for at in list(self._failures.values()))

    def exposition(self) -> bytes:
        return generate_latest(self._registry)
