"""Runs the container commands of docs/operating.md and docs/upgrading.md against a real engine.

The commands run in the order of the pages, in a clone of this tree. They start one service on
SQLite, replicas on PostgreSQL with a cluster and a proxy, and Prometheus, and then upgrade them.
"""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from app import __version__
from tests.architecture.imports import ROOT
from tests.process.containers import (
    Published,
    Reader,
    assert_kernels_are_the_images,
    assert_version,
    container_lines,
    engine,
    wait_for_targets,
    wait_ready,
    wait_until,
)
from tests.process.documents import code_of
from tests.process.origin import Origin
from tests.process.session import QUERY, Session

PORTS = (8000, 8080, 9090)
SERVICE, PROXY, PROMETHEUS = (f"http://127.0.0.1:{port}" for port in PORTS)
#: Overrides the settings of compose: the replicas send even small work to the workers.
OVERRIDE = """services:
  replica-one: &spreading
    environment:
      PURSE_CLUSTER_FROM: "0"
  replica-two: *spreading
"""
RING = b"source,target\n" + b"".join(b"%d,%d\n" % (v, (v + 1) % 12) for v in range(12))


@pytest.mark.slow
def test_containers_do_what_the_pages_say(tmp_path: Path) -> None:
    origin = Origin(tmp_path / "origin")
    checkout = tmp_path / "checkout"
    subprocess.run(["git", "clone", "--quiet", origin.folder, checkout], check=True)
    (checkout / "docker-compose.override.yml").write_text(OVERRIDE, "utf-8")
    with engine(*PORTS) as variables:
        reader = Reader(checkout, variables | {"COMPOSE_PROJECT_NAME": "privypurse-pages"})
        try:
            one, replicas = operate(reader)
            upgrade(reader, origin, one, replicas)
        finally:
            reader.type("docker compose --profile '*' down --volumes --timeout 5")


def operate(reader: Reader) -> tuple[Session, Session]:
    """Start everything; return the settings of the single service and of the replicas."""
    start, key, secrets, scale, scale_key, token, observe, observe_all = container_lines(
        "docs/operating.md"
    )
    reader.type(start)
    wait_ready(SERVICE)
    one = Session.open(Published(SERVICE, reader.type(key)))
    assert one.query("first").status_code == 201
    inside = "docker compose exec privypurse "
    assert reader.type(inside + "id -u") == "999\n"
    reader.type(inside + "sh -c '! touch /srv/x 2>/dev/null && touch /tmp/x'")
    reader.type(start)
    assert one.spent() == "0.5", "up again: the same service"

    reader.type(secrets)
    reader.type(scale)
    wait_ready(PROXY)
    # The workers must have prepared these records, because the service does no such work itself.
    replicas = Session.open(Published(PROXY, reader.type(scale_key)))
    assert_workers_prepare(replicas, "before")
    for number in range(4):
        assert replicas.query(f"early-{number}").status_code == 201
    assert replicas.query("one more").status_code == 403
    for name in ("replica-one", "replica-two"):
        log = reader.type(f"docker compose --profile scale logs --no-log-prefix {name}")
        assert '"route": "/v1/queries"' in log, f"the proxy sends nothing to {name}"
    for name in ("worker-one", "worker-two"):
        assert "Registered to:" in reader.type(f"docker compose --profile scale logs {name}")

    reader.type(token)
    reader.type(observe)
    wait_for_targets(PROMETHEUS, 1)
    reader.type(observe_all)
    wait_ready(PROXY)
    wait_for_targets(PROMETHEUS, 3)
    return one, replicas


def upgrade(reader: Reader, origin: Origin, one: Session, replicas: Session) -> None:
    """Upgrade to the next version, and the replicas to one more with a newer schema."""
    pull, up, build, first, second, others, stop, again = container_lines("docs/upgrading.md")
    # The new version has other kernels, so a worker of the older version would get no work.
    origin.change_kernels()
    origin.replace("app/__init__.py", __version__, "90.0.1")
    origin.commit()
    reply = one.query("first").content
    reader.type(pull)
    reader.type(up)
    wait_ready(SERVICE)
    assert_version(SERVICE, "90.0.1")
    assert (one.query("first").content, one.spent()) == (reply, "0.5")
    assert_valid(one)
    [typed] = [
        code.text
        for code in code_of((ROOT / "docs/tutorial_operator.md").read_text("utf-8"))
        if code.form == "inline" and code.text.startswith("docker compose")
    ]
    assert reader.type(typed + " verify").endswith("valid\n")
    assert_kernels_are_the_images(reader, "privypurse")

    reader.type(build)
    upgraded = Event()
    with ThreadPoolExecutor(1) as asking:
        try:
            future = asking.submit(keep_asking, replicas, upgraded)
            reader.type(first)
            reader.type(second)
            reader.type(others)
        finally:
            upgraded.set()
        replies = future.result()
    assert set(replies) == {201}
    assert spent(replicas)["before"] == Decimal("0.5") + replies.total() * Decimal("0.0001")
    assert_version(PROXY, "90.0.1")
    assert_valid(replicas)
    for name in ("replica-two", "worker-one"):
        assert_kernels_are_the_images(reader, name)
    assert_workers_prepare(replicas, "after")

    origin.migrate()
    origin.replace("app/__init__.py", "90.0.1", "90.0.2")
    origin.commit()
    before = spent(replicas)
    reader.type(pull)
    reader.type(stop)
    reader.type(again)
    wait_ready(PROXY)
    assert_version(PROXY, "90.0.2")
    assert spent(replicas) == before
    assert_valid(replicas)
    assert_workers_prepare(replicas, "last")
    table = "psql --username=purse --tuples-only --command='SELECT count(*) FROM later'"
    assert reader.type(f"docker compose --profile scale exec database {table}").strip() == "0"


def keep_asking(session: Session, until: Event) -> Counter[int]:
    """Query as a client does and retry with the same key; return the replies by status."""
    body = QUERY | {"dataset": "before", "epsilon": "0.0001"}
    replies: Counter[int] = Counter()

    def answered() -> bool:
        headers = {"Idempotency-Key": f"late-{replies.total()}"}
        reply = session.send("POST", "/v1/queries", session.analyst, json=body, headers=headers)
        if reply.status_code in (409, 502, 503):
            return False
        replies[reply.status_code] += 1
        return True

    while not until.is_set():
        wait_until(answered, "no answer")
        time.sleep(0.5)
    return replies


def spent(session: Session) -> dict[str, Decimal]:
    """Returns the spent ε by dataset."""
    accounts = session.ok("GET", "/v1/budgets", session.analyst)["items"]
    return {account["dataset"]: Decimal(account["spent"]["epsilon"]) for account in accounts}


def assert_valid(session: Session) -> None:
    assert session.ok("GET", "/v1/ledger/verification", session.owner)["valid"]


def assert_workers_prepare(session: Session, name: str) -> None:
    """A new graph becomes ready at replicas that leave such work to their workers."""
    body: dict[str, Any] = {"name": name, "kind": "graph", "neighbouring": "edge"}
    body["nodes"] = {"count": 12}
    body |= {"max_degree": 10, "cap": {"epsilon": "1", "delta": "0"}}
    session.ok("POST", "/v1/datasets", session.owner, json=body)
    session.upload(name, RING)
    path = f"/v1/datasets/{name}/budgets/ada"
    session.ok("PUT", path, session.owner, json={"epsilon": "1", "delta": "0"})
    query = QUERY | {"dataset": name}
    session.ok("POST", "/v1/queries", session.analyst, json=query)
