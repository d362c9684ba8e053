"""Queries per second over HTTP, beside an empty FastAPI endpoint in the same rounds.

One worker, 32 connections, SQLite, release instants off: the cheapest query there is (a count of a
table of two rows), the replay of one, and one that is refused for its price; also without the fast
lane, through the routes of FastAPI. The empty endpoints are those of ``benchmarks.service.empty``:
``empty`` takes the same body by a model of three fields, and ``same models`` by those of the
service. ``bare`` takes and gives nothing and is shown for comparison. Every query waits
for two commits: a slow or busy disk shows in its rate, not in its processor time.
"""

import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from app.demo.service import ROOT, ServiceProcess
from benchmarks.bench import BEFORE, Bar, Bench, Setting
from benchmarks.result import Result
from benchmarks.rounds import Rounds
from benchmarks.service.planted import COMMAND
from benchmarks.service.pressure import Replies, get, post, press
from benchmarks.service.processes import SERVE, Checkout, processor_seconds
from benchmarks.service.session import Session

CONNECTIONS = 32
EMPTY, SAME = "empty endpoint", "empty endpoint with the same models"
#: By kind of request: the expected status, and how large its rate must be as a share of the rate of
#: each empty endpoint.
KINDS = {
    "query": (201, {EMPTY: 0.35, SAME: 0.5}),
    "replay": (201, {EMPTY: 0.45, SAME: 0.8}),
    "refusal": (403, {EMPTY: 0.45, SAME: 0.6}),
}
#: Requests that charge nothing, each with the least ratio of its rate to that of the empty
#: endpoint.
READS = {"catalogue": 0.5, "quote": 0.2, "history": 0.1}
#: This checkout must reach at least this share of the rate of the one that ``--before`` names.
LEAST_SHARE = 0.95
JSON = {"Content-Type": "application/json"}
QUERY = {"kind": "statistic", "statistic": "count", "mechanism": "laplace"}
TABLE = {
    "name": "small",
    "kind": "table",
    "neighbouring": "add_remove",
    "max_rows": 100,
    "attributes": [{"name": "sex", "kind": "categorical", "values": ["Female", "Male"]}],
}
#: The service counts requests, so this cost is measured, but its rate limit is too high to be
#: reached.
SETTINGS = {"PURSE_RELEASE_INTERVAL": "0", "PURSE_RATE_LIMIT": "100000000/minute"}
#: Marks results of the service without its fast lane: requests pass through the routes of FastAPI.
FRAMEWORK = ", framework"


@dataclass
class Pressure:
    """A way of ``Rounds``: requests of one kind to one process, all of which get one status."""

    service: ServiceProcess
    make: Callable[[], bytes]
    seconds: float
    status: int
    connections: int = CONNECTIONS
    replies: list[Replies] = field(default_factory=list)
    #: The processor seconds of the service per request, one value for each call.
    work: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        pid, port = self.service.pid, self.service.port
        before = processor_seconds(pid)
        replies = press(port, self.make, connections=self.connections, seconds=self.seconds)
        if set(replies.statuses) != {self.status}:
            raise AssertionError(f"{self.status} expected: {replies.statuses}")
        self.replies.append(replies)
        self.work.append((processor_seconds(pid) - before) / replies.count)
        return replies.rate


def requests(session: Session) -> dict[str, Callable[[], bytes]]:
    """What makes each kind of request."""
    session.describe(TABLE)
    session.upload("small", b"sex\nMale\nFemale\n")
    bearer = {"Authorization": f"Bearer {session.keys['analyst']}"}
    numbers = count()

    def keyed(epsilon: str) -> bytes:
        key = {"Idempotency-Key": f"key-{next(numbers)}"}
        return post("/v1/queries", body(epsilon), bearer | key)

    key = {"Idempotency-Key": "replayed"}
    replay = post("/v1/queries", body("0.001"), bearer | key)
    session.send("analyst", "POST", "/v1/queries", content=body("0.001"), headers=JSON | key)
    return {
        "query": partial(keyed, "0.001"),
        "replay": lambda: replay,
        "refusal": partial(keyed, "200000"),
    }


def reads(session: Session) -> dict[str, bytes]:
    """A request of each kind of ``READS``, to a dataset that has queries."""
    bearer = {"Authorization": f"Bearer {session.keys['analyst']}"}
    return {
        "catalogue": get("/v1/catalogue", bearer),
        "quote": post("/v1/quotes", body("0.001"), bearer),
        "history": get("/v1/queries?limit=20", bearer),
    }


def body(epsilon: str) -> bytes:
    """The query at this price."""
    return json.dumps({"dataset": "small", "epsilon": epsilon, "query": QUERY}).encode()


def run(result: Result, setting: Setting) -> None:
    seconds, rounds = (0.5, 2) if setting.quick else (3.0, 5)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        endpoints = Checkout(folder / "empty", command=("-m", "benchmarks.service.empty"))
        stack.enter_context(endpoints)
        bare, empty, same = (
            post("/", b"", {}),
            post("/asked", body("0.001"), {}),
            post("/same", body("0.001"), {}),
        )
        ways = {
            "bare": Pressure(endpoints, lambda: bare, seconds, 200),
            EMPTY: Pressure(endpoints, lambda: empty, seconds, 201),
            SAME: Pressure(endpoints, lambda: same, seconds, 201),
        }
        services = {"": (ROOT, SERVE), FRAMEWORK: (ROOT, (*COMMAND, "framework"))}
        if setting.before:
            services[", before"] = (setting.before, SERVE)
        for name, (root, command) in services.items():
            session = stack.enter_context(Session.opened(root, command, **SETTINGS))
            for kind, make in requests(session).items():
                ways[kind + name] = Pressure(session.service, make, seconds, KINDS[kind][0])
            if not name:
                for kind, request in reads(session).items():
                    ways[kind] = Pressure(session.service, partial(bytes, request), seconds, 200)
        rates = Rounds.of("per second", ways, rounds).report(result, "requests")
    result.table(
        "of a request", ["way", "p99 in ms", "µs of a processor"],
        [[name, median(r.p99_ms for r in way.replies[1:]), median(way.work[1:]) * 1e6]
         for name, way in ways.items()],
    )  # fmt: skip
    for kind in READS:
        result.measure(f"{kind} / {EMPTY}", rates.ratio(kind, EMPTY), "×")
    for kind in KINDS:
        for endpoint in (EMPTY, SAME):
            result.measure(f"{kind} / {endpoint}", rates.ratio(kind, endpoint), "×")
        result.measure(f"{kind}: fast lane / framework", rates.ratio(kind, kind + FRAMEWORK), "×")
        if setting.before is not None:
            result.measure(f"{kind} / before", rates.ratio(kind, f"{kind}, before"), "×")


BENCHES = (
    Bench(
        "http",
        "How many queries, replays and refusals per second does the service answer?",
        run,
        120.0,
        (
            "an empty FastAPI endpoint",
            "one with the same models",
            "the service without its fast lane",
            BEFORE,
        ),
        (
            *(
                Bar(f"{kind} / {endpoint}", least=least)
                for kind, (_, shares) in KINDS.items()
                for endpoint, least in shares.items()
            ),
            *(Bar(f"{kind} / {EMPTY}", least=least) for kind, least in READS.items()),
            Bar("*: fast lane / framework", least=1),
            Bar("* / before", least=LEAST_SHARE, before=True),
        ),
    ),
)
