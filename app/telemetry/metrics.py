"""Metrics for the operator: requests by route and status, and their durations.

All datasets are counted together, and each request when its reply leaves. A paid query therefore
counts at its public deadline. Memory, processor time and run times of kernels depend on
records. So there are no durations of uploads, and none of the usual process metrics.
"""

import time
from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.multiprocess import MultiProcessCollector

from app import __version__

MEDIA_TYPE = CONTENT_TYPE_LATEST

#: How a gauge of several processes becomes one value: by the sum, the largest or the smallest. With
#: ``live``, processes that have ended do not count.
Merge = Literal["sum", "livesum", "livemax", "livemin"]
#: For each gauge, its text and how processes are merged. Danger: a gauge may show only public
#: instants, load or the ledger. So a query counts until its deadline, whenever its work ends.
GAUGES: dict[str, tuple[str, Merge]] = {
    "versions_not_open": ("Versions that queries need and that are not open here.", "livesum"),
    "deadlines_missed": ("Deadlines that queries have missed: the machine is too slow.", "sum"),
    "queries_late": ("Queries that left after their deadline, for any reason.", "sum"),
    "queries_in_flight": ("Queries between their charge and their deadline.", "livesum"),
    "queries_waiting": ("Charged queries that have not begun.", "livesum"),
    "queries_refused": ("Refused queries since the start of the service.", "sum"),
    "accounts_frozen": ("Accounts that take no charge: their entries went back.", "livemax"),
    "heads_age_seconds": ("Seconds since accounts and published heads were compared.", "livemax"),
    "verification_age_seconds": ("Seconds since the ledger was last verified.", "livemax"),
    "ledger_valid": ("1 if the last verification found no fault, else 0.", "livemin"),
    "sources_failing": ("Sources whose last read here failed, in the last hour.", "livemax"),
}
#: The environment variable that names a folder in which the processes of one service write their
#: metrics, to show them together.
FOLDER = "PROMETHEUS_MULTIPROC_DIR"
NAN = float("nan")
#: Seconds for which the gauge ``sources_failing`` counts a source whose last read failed.
REMEMBERED = 3600.0
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Metrics:
    """The counters of one application; each application has its own registry.

    With ``several``, each process of one service shows the metrics of all together. They write them
    into the folder that the environment names as ``FOLDER``.
    """

    def __init__(self, *, several: bool = False) -> None:
        self._registry = CollectorRegistry()
        self._several, self._exposed = several, self._registry
        if several:
            self._exposed = CollectorRegistry()
            MultiProcessCollector(self._exposed)  # type: ignore[no-untyped-call]  # not annotated
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
        # To register a gauge twice is an error. A scrape and a background thread may both come to
        # register it, so they take this lock.
        self._refreshing = Lock()
        self._gauges: dict[str, Gauge] = {}
        self._failures: dict[str, float] = {}
        # A gauge that nothing measures yet is unknown, and 0 would look like a measurement.
        self._reads: dict[str, Callable[[], float | None]] = dict.fromkeys(GAUGES, lambda: None)
        self.watch("sources_failing", self._failing)
        build = Gauge(
            "privypurse_build_info",
            "The version that runs.",
            ["version"],
            registry=self._registry,
            multiprocess_mode="livemax",
        )
        build.labels(__version__).set(1)

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
        self._reads[gauge] = read

    def refresh(self) -> None:
        """Read every gauge anew. Other processes show what the last call of each one read.

        Where several processes are merged, a gauge begins with its first number: an unknown one
        among them would hide the worst of the others.
        """
        with self._refreshing:
            for name, read in self._reads.items():
                number = read()
                if number is None and self._several:
                    continue
                if name not in self._gauges:
                    text, merge = GAUGES[name]
                    self._gauges[name] = Gauge(
                        f"privypurse_{name}", text, registry=self._registry, multiprocess_mode=merge
                    )
                self._gauges[name].set(NAN if number is None else number)

    def note_source(self, name: str, *, fails: bool) -> None:
        """Note whether the last read of a source failed. No metric names the source."""
        if fails:
            self._failures[name] = time.monotonic()
        else:
            self._failures.pop(name, None)

    def _failing(self) -> int:
        # A failure counts for an hour at most, because another process may have read the source
        # successfully since.
        since = time.monotonic() - REMEMBERED
        return sum(at > since for at in list(self._failures.values()))

    def exposition(self) -> bytes:
        self.refresh()
        return generate_latest(self._exposed)
