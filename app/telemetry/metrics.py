"""What an operator may count: requests by route and status, and how long they took.

Counted for all datasets together, and only what its caller has seen too: a paid query is counted
when its reply leaves, at its release instant. Uploads have no durations and there is none of the
usual process metrics: memory, processor time and run times of kernels depend on records.
"""

from functools import cache

from prometheus_client import CollectorRegistry, Counter, Histogram, Info, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from app import __version__

MEDIA_TYPE = CONTENT_TYPE_LATEST

#: Their duration is that of reading and preparing records.
UNTIMED = frozenset(
    {
        "/v1/datasets/{name}/records",
        "/v1/datasets/{name}/nodes",
        "/ui/datasets/{name}/records",
        "/ui/datasets/{name}/nodes",
    }
)
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
        # The library checks and joins the labels anew each time; there are as many as templates.
        self._replies = cache(
            lambda verb, route, status: self._requests.labels(verb, route, str(status or "aborted"))
        )
        self._durations = cache(self._seconds.labels)
        build = Info("privypurse_build", "The version that runs.", registry=self._registry)
        build.info({"version": __version__})

    def observe(self, method: str, route: str, status: int | None, seconds: float) -> None:
        """Count one reply; ``route`` is a template, so the number of series is bounded."""
        verb = method if method in METHODS else "other"
        self._replies(verb, route, status).inc()
        if route not in UNTIMED:
            self._durations(route).observe(seconds)

    def exposition(self) -> bytes:
        return generate_latest(self._registry)
