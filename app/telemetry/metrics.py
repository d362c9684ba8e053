"""Metrics for the operator: requests by route and status, and their durations.

All datasets are counted together, and each request when its reply leaves. A paid query therefore
counts at its public deadline. Memory, processor time and run times of kernels depend on
records. So there are no durations of uploads, and none of the usual process metrics.
"""

from collections.abc import Callable
from functools import cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from app import __version__

MEDIA_TYPE = CONTENT_TYPE_LATEST

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
        self._not_open = Gauge(
            "privypurse_versions_not_open",
            "Versions that queries need and that are not open in this process.",
            registry=self._registry,
        )
        self._misses = Gauge(
            "privypurse_deadlines_missed",
            "Deadlines that queries of this process have missed, for a machine that is too slow.",
            registry=self._registry,
        )
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

    def watch_versions(self, missing: Callable[[], int]) -> None:
        """Show the number that ``missing`` returns. It changes at public instants."""
        self._not_open.set_function(missing)

    def watch_misses(self, misses: Callable[[], int]) -> None:
        """Show the number that ``misses`` returns, which follows load."""
        self._misses.set_function(misses)

    def exposition(self) -> bytes:
        return generate_latest(self._registry)
