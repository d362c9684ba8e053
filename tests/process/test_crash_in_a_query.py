"""``kill -9`` while a query computes: the charge remains, and a retry runs the query under it.

While the process lives, no other attempt runs the query, however long it takes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.process.conftest import QUICK
from tests.process.session import QUERY, Session
from tests.support.blocked_service import BlockedService
from tests.support.patience import PATIENCE

#: The lease of a query in seconds. The service renews it every two seconds, a third of it, so a
#: renewal may be four seconds late.
LEASE = 6.0


@pytest.fixture
def service(tmp_path: Path) -> Iterator[BlockedService]:
    """A service of short leases, whose queries wait when the test says so."""
    with BlockedService(tmp_path / "data", **QUICK, PURSE_LEASE=str(LEASE)) as running:
        yield running


@pytest.fixture
def session(service: BlockedService) -> Session:
    return Session.open(service)


def charges(session: Session) -> list[dict[str, Any]]:
    """The charges of the analyst, read from the ledger."""
    entries = session.ok("GET", "/v1/ledger?dataset=star", session.analyst)["items"]
    return [entry for entry in entries if entry["kind"] == "charge"]


def wait_for_the_charge(session: Session, client: threading.Thread) -> None:
    """Return when the query of ``client`` is charged and, because it is blocked, still runs."""
    deadline = time.monotonic() + PATIENCE
    while not charges(session):
        assert client.is_alive(), "the client ended before its query was charged"
        assert time.monotonic() < deadline
        time.sleep(0.005)


def crash_in_a_query(session: Session, service: BlockedService) -> float:
    """Send a query and kill the service once it is charged; return the time of sending."""
    assert charges(session) == []
    ended: list[object] = []

    def asking() -> None:
        try:
            ended.append(session.query("slow").text)
        except httpx.TransportError as error:
            ended.append(error)

    service.block()
    client = threading.Thread(target=asking)
    start = time.monotonic()
    client.start()
    wait_for_the_charge(session, client)
    service.kill()
    client.join()
    service.unblock()
    assert isinstance(ended[0], httpx.TransportError), f"answered before it was killed: {ended}"
    return start


def test_the_charge_stands_and_the_key_runs_again_under_it(
    session: Session, service: BlockedService
) -> None:
    start = crash_in_a_query(session, service)
    service.start().wait_ready()
    assert session.spent() == "0.5"
    [charge] = charges(session)
    [query] = session.ok("GET", "/v1/queries?dataset=star", session.analyst)["items"]
    assert query["status"] == "running"

    while (reply := session.query("slow")).status_code == 409:
        # No second attempt may run while the first might still be alive.
        assert reply.json()["type"].endswith("/still-running")
        assert reply.json()["id"] == query["id"]
        assert time.monotonic() < start + LEASE + PATIENCE
        time.sleep(0.1)
    assert reply.status_code == 201, reply.text
    assert time.monotonic() > start + LEASE
    answer = reply.json()
    assert answer["id"] == query["id"]
    assert answer["charge"]["epsilon"] == "0.5"
    assert len(set(answer["answer"]["selected"])) == 2

    # Both attempts have one charge together, and from now on the key has one answer.
    assert charges(session) == [charge]
    assert session.spent() == "0.5"
    again = session.query("slow")
    assert (again.status_code, again.content) == (201, reply.content)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert session.spent() == "0.5"


def test_a_query_may_outlive_its_lease(session: Session, service: BlockedService) -> None:
    """Retries during a query of several leases receive 409; none runs the query again."""
    headers = {"Idempotency-Key": "long", "Prefer": "respond-async"}

    def send() -> httpx.Response:
        return session.send("POST", "/v1/queries", session.analyst, json=QUERY, headers=headers)

    service.block()
    started = time.monotonic()
    assert send().status_code == 202
    while time.monotonic() < started + 2 * LEASE:
        reply = send()
        assert reply.status_code == 409, reply.text
        time.sleep(0.1)
    service.unblock()
    while (reply := send()).status_code == 409:
        assert time.monotonic() < started + PATIENCE
        time.sleep(0.1)
    # If a retry had taken the query over, it would have received 202.
    assert (reply.status_code, reply.json()["status"]) == (201, "answered")
    assert reply.headers["Idempotency-Replayed"] == "true"
    assert len(charges(session)) == 1
