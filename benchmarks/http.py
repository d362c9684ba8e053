"""Queries a second over HTTP, beside an empty FastAPI endpoint in the same run.

One worker, 32 connections, SQLite, release instants off: the cheapest query there is (a count of a
table of two rows), the replay of one, and one that is refused for its price. The empty endpoint is
``benchmarks.empty``'s, which takes the same body; ``bare`` takes and gives nothing and is shown for
comparison. Rounds are interleaved, the first, which warms up, does not count, and the median of the
ratios does; status 1 when one is too small. Every query waits for two commits: a slow or busy disk
shows in its rate, not in its processor time.

    python -m benchmarks.http [--rounds N] [--seconds S]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median

import httpx

from app.demo.service import free_port
from benchmarks.pressure import Pressed, post, press
from benchmarks.session import AMPLE, CSV, Session

CONNECTIONS = 32
#: The least share of the empty endpoint's rate, and the status that is expected.
ASKED = {"query": (0.35, 201), "replay": (0.45, 201), "refusal": (0.45, 403)}
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


@contextmanager
def empty_service() -> Iterator[tuple[int, int]]:
    """The port and the number of a process that serves the empty endpoint."""
    port = free_port()
    with subprocess.Popen([sys.executable, "-m", "benchmarks.empty", str(port)]) as process:
        try:
            transport = httpx.HTTPTransport(retries=10)
            with httpx.Client(transport=transport, timeout=30) as client:
                client.post(f"http://127.0.0.1:{port}/").raise_for_status()
            yield port, process.pid
        finally:
            process.terminate()


def requests(session: Session) -> dict[str, Callable[[], bytes]]:
    """What makes each kind of request."""
    path = "/v1/datasets/small"
    session.send("owner", "POST", "/v1/datasets", json=TABLE)
    session.send("owner", "PUT", f"{path}/budgets/analyst", json=AMPLE)
    session.send("owner", "PUT", f"{path}/records", content=b"sex\nMale\nFemale\n", headers=CSV)
    while session.send("owner", "GET", path)["status"] != "ready":
        time.sleep(0.05)
    bearer = {"Authorization": f"Bearer {session.key('analyst')}"}
    numbers = count()

    def keyed(epsilon: str) -> bytes:
        key = {"Idempotency-Key": f"key-{next(numbers)}"}
        return post("/v1/queries", body(epsilon), bearer | key)

    replay = post("/v1/queries", body("0.001"), bearer | {"Idempotency-Key": "replayed"})
    key = {"Idempotency-Key": "replayed"}
    session.send("analyst", "POST", "/v1/queries", content=body("0.001"), headers=JSON | key)
    return {
        "query": partial(keyed, "0.001"),
        "replay": lambda: replay,
        "refusal": partial(keyed, "200000"),
    }


def body(epsilon: str) -> bytes:
    """The query at this price."""
    return json.dumps({"dataset": "small", "epsilon": epsilon, "query": QUERY}).encode()


def processor_seconds(pid: int) -> float:
    """What a process has used so far (Linux): tells its own work from that of its neighbours."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    options = parser.parse_args()
    seen: dict[str, list[Pressed]] = {name: [] for name in ("bare", "empty", *ASKED)}
    work: dict[str, list[float]] = {name: [] for name in seen}

    def pressed(name: str, pid: int, port: int, make: Callable[[], bytes]) -> None:
        before = processor_seconds(pid)
        result = press(port, make, connections=CONNECTIONS, seconds=options.seconds)
        seen[name].append(result)
        work[name].append((processor_seconds(pid) - before) / result.replies)

    with Session.opened(**SETTINGS) as session, empty_service() as (port, pid):
        makers = requests(session)
        bare, empty = post("/", b"", {}), post("/asked", body("0.001"), {})
        for number in range(options.rounds + 1):
            pressed("bare", pid, port, lambda: bare)
            pressed("empty", pid, port, lambda: empty)
            for name, make in makers.items():
                pressed(name, session.service.pid, session.service.port, make)
                assert set(seen[name][-1].statuses) == {ASKED[name][1]}, seen[name][-1].statuses
            if number == 0:
                for rounds in (*seen.values(), *work.values()):
                    rounds.clear()
    failed = False
    for name, rounds in seen.items():
        rate, p99 = median(r.rate for r in rounds), median(r.p99_ms for r in rounds)
        line = f"{name:10}{rate:8.0f} a second   p99 {p99:6.1f} ms"
        line += f"   {median(work[name]) * 1e6:5.0f} µs of processor"
        if name in ASKED:
            least, _ = ASKED[name]
            pairs = zip(rounds, seen["empty"], strict=True)
            ratio = median(mine.rate / empty.rate for mine, empty in pairs)
            failed |= ratio < least
            line += f"   {ratio:5.2f} ≥ {least:g}  {'holds' if ratio >= least else 'FAILS'}"
        print(line, flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
