"""``kill -9`` while a query computes: the charge remains, and a retry runs the query under it.

While the process lives, no other attempt runs the query, however long it takes.

The query takes long: hundreds of draws from a hundred thousand nodes. The test sees that the
records are open in the list of files that the process has mapped.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.demo.service import ServiceProcess
from tests.process.session import Session

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/maps").exists(), reason="reads what a process has mapped from /proc"
)

NODES = 100_000
LEASE = 3.0
SLOW: dict[str, Any] = {
    "dataset": "wide",
    "epsilon": "0.5",
    "query": {
        "kind": "top_k",
        "k": 300,
        "utilities": [{"name": "degree"}],
        "sensitivity": "global",
        "draws": "peeled",
    },
}


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    """A session on a graph from which it takes seconds to draw."""
    settings: dict[str, Any] = {
        "PURSE_RELEASE_INTERVAL": "0",
        "PURSE_OPENING_INTERVAL": "0",
        "PURSE_LEASE": str(LEASE),
    }
    # One thread, so that drawing takes seconds on a machine of any size.
    settings["PURSE_WORKERS"] = "1"
    with ServiceProcess(tmp_path / "data", **settings) as service:
        opened = Session.open(service)
        wide_graph(opened)
        yield opened


def wide_graph(session: Session) -> None:
    """Many nodes and few edges: quick to upload, slow to draw from."""
    graph = {
        "name": "wide",
        "kind": "graph",
        "neighbouring": "edge",
        "nodes": {"count": NODES},
        "max_degree": 100,
        "cap": {"epsilon": "5", "delta": "0"},
    }
    session.ok("POST", "/v1/datasets", session.owner, json=graph)
    session.upload("wide", b"source,target\n0,1\n1,2\n")
    allowance = {"epsilon": "2", "delta": "0"}
    session.ok("PUT", "/v1/datasets/wide/budgets/ada", session.owner, json=allowance)


def ask(session: Session, key: str = "slow") -> httpx.Response:
    headers = {"Idempotency-Key": key}
    return session.send("POST", "/v1/queries", session.analyst, json=SLOW, headers=headers)


def charges(session: Session) -> list[dict[str, Any]]:
    """The charges of the analyst on the wide graph, read from the ledger."""
    entries = session.ok("GET", "/v1/ledger?dataset=wide", session.analyst)["items"]
    return [entry for entry in entries if entry["kind"] == "charge"]


def spent(session: Session) -> str:
    [account] = [
        account
        for account in session.ok("GET", "/v1/budgets", session.analyst)["items"]
        if account["dataset"] == "wide"
    ]
    return str(account["spent"]["epsilon"])


def crash_in_a_query(session: Session) -> float:
    """Send a query and kill the service once it is charged; return the time of sending."""
    assert charges(session) == []
    ended: list[object] = []

    def asking() -> None:
        try:
            ended.append(ask(session).text)
        except httpx.TransportError as error:
            ended.append(error)

    client = threading.Thread(target=asking)
    start = time.monotonic()
    client.start()
    while not charges(session):
        assert client.is_alive(), f"answered before it was seen running: {ended}"
        assert time.monotonic() < start + 120
        time.sleep(0.005)
    session.service.kill()
    client.join()
    assert isinstance(ended[0], httpx.TransportError), f"answered before it was killed: {ended}"
    return start


def test_the_charge_stands_and_the_key_runs_again_under_it(session: Session) -> None:
    start = crash_in_a_query(session)
    session.service.start().wait_ready()
    assert spent(session) == "0.5"
    [charge] = charges(session)
    [query] = session.ok("GET", "/v1/queries?dataset=wide", session.analyst)["items"]
    assert query["status"] == "running"

    while (reply := ask(session)).status_code == 409:
        # No second attempt may run while the first might still be alive.
        assert reply.json()["type"].endswith("/still-running")
        assert reply.json()["id"] == query["id"]
        assert time.monotonic() < start + LEASE + 120
        time.sleep(0.2)
    assert reply.status_code == 201, reply.text
    assert time.monotonic() > start + LEASE
    answer = reply.json()
    assert answer["id"] == query["id"]
    assert answer["charge"]["epsilon"] == "0.5"
    assert len(set(answer["answer"]["selected"])) == 300

    # One charge for both attempts, and from now on one answer.
    assert charges(session) == [charge]
    assert spent(session) == "0.5"
    again = ask(session)
    assert (again.status_code, again.content) == (201, reply.content)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert spent(session) == "0.5"


def test_a_query_may_outlive_its_lease(session: Session) -> None:
    """Retries during a query of several leases receive 409; none runs the query again."""
    body = SLOW | {"query": SLOW["query"] | {"k": 1000}}
    headers = {"Idempotency-Key": "long", "Prefer": "respond-async"}

    def send() -> httpx.Response:
        return session.send("POST", "/v1/queries", session.analyst, json=body, headers=headers)

    started = time.monotonic()
    assert send().status_code == 202
    while (reply := send()).status_code == 409:
        assert time.monotonic() < started + 120
        time.sleep(0.2)
    assert time.monotonic() > started + LEASE, "too quick to prove anything"
    # A retry that had taken the query over would have received 202.
    assert (reply.status_code, reply.json()["status"]) == (201, "answered")
    assert reply.headers["Idempotency-Replayed"] == "true"
    assert len(charges(session)) == 1
