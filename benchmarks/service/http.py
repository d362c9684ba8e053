"""Queries a second over HTTP, beside an empty FastAPI endpoint in the same rounds.

One worker, 32 connections, SQLite, release instants off: the cheapest query there is (a count of a
table of two rows), the replay of one, and one that is refused for its price. The empty endpoint is
that of ``benchmarks.service.empty``, which takes the same body; ``bare`` takes and gives nothing
and is shown for comparison. Every query waits for two commits: a slow or busy disk shows in its
rate, not in its processor time.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count
from statistics import median

from httpx import Client, HTTPTransport

from app.demo.service import ROOT, free_port
from benchmarks.bench import BEFORE, Bar, Bench, Setting
from benchmarks.result import Result
from benchmarks.rounds import Rounds, number
from benchmarks.service.pressure import Pressed, post, press
from benchmarks.service.processes import processor_seconds
from benchmarks.service.session import AMPLE, Session

CONNECTIONS = 32
#: The least share of the empty endpoint's rate, and the status that is expected.
ASKED = {"query": (0.35, 201), "replay": (0.45, 201), "refusal": (0.45, 403)}
#: The least share of the rate of the tree before.
KEPT = 0.95
JSON = {"Content-Type": "application/json"}
QUERY = {"kind": "statistic", "statistic": "count", "mechanism": "laplace"}
TABLE = {
    "name": "small",
    "kind": "table",
    "neighbouring": "add_remove",
    "max_rows": 100,
    "attributes": [{"name": "sex", "kind": "categorical", "values": ["Female", "Male"]}],
    "cap": AMPLE,
}
#: The service counts requests, and this limit is never reached.
SETTINGS = {"PURSE_RELEASE_INTERVAL": "0", "PURSE_RATE_LIMIT": "100000000/minute"}


class Pressure:
    """A way of ``Rounds``: requests of one kind to one process, all of which get one status."""

    def __init__(
        self, pid: int, port: int, make: Callable[[], bytes], seconds: float, status: int | None
    ) -> None:
        self._pid, self._port, self._make = pid, port, make
        self._seconds, self._status = seconds, status
        self.seen: list[Pressed] = []
        #: Seconds of a processor per request.
        self.work: list[float] = []

    def __call__(self) -> float:
        before = processor_seconds(self._pid)
        found = press(self._port, self._make, connections=CONNECTIONS, seconds=self._seconds)
        if self._status is not None and set(found.statuses) != {self._status}:
            raise AssertionError(f"{self._status} expected: {found.statuses}")
        self.seen.append(found)
        self.work.append((processor_seconds(self._pid) - before) / found.replies)
        return found.rate


@contextmanager
def empty_service() -> Iterator[tuple[int, int]]:
    """The number and the port of a process that serves the empty endpoint."""
    port = free_port()
    command = [sys.executable, "-m", "benchmarks.service.empty", str(port)]
    with subprocess.Popen(command) as process:
        try:
            with Client(transport=HTTPTransport(retries=10), timeout=30) as client:
                client.post(f"http://127.0.0.1:{port}/").raise_for_status()
            yield process.pid, port
        finally:
            process.terminate()


def requests(session: Session) -> dict[str, Callable[[], bytes]]:
    """What makes each kind of request."""
    session.describe(TABLE)
    session.upload_bytes("small", b"sex\nMale\nFemale\n")
    bearer = {"Authorization": f"Bearer {session.key('analyst')}"}
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


def body(epsilon: str) -> bytes:
    """The query at this price."""
    return json.dumps({"dataset": "small", "epsilon": epsilon, "query": QUERY}).encode()


def run(setting: Setting) -> Result:
    result = Result()
    seconds, rounds = (0.5, 2) if setting.quick else (3.0, 5)
    with ExitStack() as stack:
        pid, port = stack.enter_context(empty_service())
        bare, empty = post("/", b"", {}), post("/asked", body("0.001"), {})
        ways = {
            "bare": Pressure(pid, port, lambda: bare, seconds, None),
            "empty": Pressure(pid, port, lambda: empty, seconds, None),
        }
        trees = {"": ROOT} | ({", before": setting.before} if setting.before else {})
        for name, root in trees.items():
            session = stack.enter_context(Session.opened(root, **SETTINGS))
            service = session.service
            for kind, make in requests(session).items():
                way = Pressure(service.pid, service.port, make, seconds, ASKED[kind][1])
                ways[kind + name] = way
        found = Rounds.of("a second", ways, rounds).report(result, "requests")
    result.table(
        "of a request", ["way", "p99 in ms", "µs of a processor"],
        [[name, number(median(p.p99_ms for p in way.seen[1:])), number(median(way.work[1:]) * 1e6)]
         for name, way in ways.items()],
    )  # fmt: skip
    for kind in ASKED:
        result.measure(f"{kind} / empty endpoint", found.ratio(kind, "empty"), "×")
        if setting.before is not None:
            result.measure(f"{kind} / before", found.ratio(kind, f"{kind}, before"), "×")
    return result


BENCHES = (
    Bench(
        "http",
        "How many queries, replays and refusals a second does the service answer?",
        run,
        90.0,
        ("an empty FastAPI endpoint", BEFORE),
        (
            *(Bar(f"{kind} / empty endpoint", least=least) for kind, (least, _) in ASKED.items()),
            Bar("* / before", least=KEPT, before=True),
        ),
    ),
)
