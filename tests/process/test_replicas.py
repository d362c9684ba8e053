"""Two replicas on one PostgreSQL, behind the proxy of ``deploy/``: one service, one budget.

Without the proxy's program, requests go to the two replicas in turn, as the proxy sends them.
"""

from __future__ import annotations

import itertools
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import pytest

from app.demo.service import ServiceProcess, free_port
from tests.architecture.imports import ROOT
from tests.process.conftest import QUICK
from tests.process.session import CERTIFICATES, QUERY, Session
from tests.support.patience import PATIENCE, REPLY, WAIT
from tests.support.postgresql import new_database

CADDY = shutil.which("caddy")
RACING, FIT = 200, 10


@pytest.fixture(scope="module")
def database_url() -> Iterator[str]:
    """A new, empty database."""
    with new_database() as url:
        yield url


@pytest.fixture
def own_database() -> Iterator[str]:
    """A new, empty database for one test."""
    with new_database() as url:
        yield url


@dataclass
class Cluster:
    """Two replicas with users and a graph, and the addresses for clients."""

    one: Session
    two: Session
    address: Callable[[], str]

    def ask(self, key: str | None = None, **changes: Any) -> httpx.Response:
        """Ask until a replica answers that has opened the records: before, 503 is free."""
        headers = WAIT | {"Authorization": f"Bearer {self.one.analyst}"}
        if key is not None:
            headers["Idempotency-Key"] = key
        deadline = time.monotonic() + PATIENCE
        while True:
            url = self.address() + "/v1/queries"
            reply = httpx.post(
                url, json=QUERY | changes, headers=headers, timeout=REPLY, verify=CERTIFICATES
            )
            if reply.status_code != 503 or time.monotonic() > deadline:
                return reply
            time.sleep(0.1)

    def spent(self, dataset: str) -> set[str]:
        """The ε that the analyst has spent, by each replica."""
        return {
            account["spent"]["epsilon"]
            for session in (self.one, self.two)
            for account in session.ok("GET", "/v1/budgets", session.analyst)["items"]
            if account["dataset"] == dataset
        }


@pytest.fixture(scope="module")
def replicas(
    database_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Session, Session]]:
    """Both replicas of one installation, with its users."""
    folder = tmp_path_factory.mktemp("replicas")
    settings = QUICK | {"PURSE_DATABASE_URL": database_url}
    with ExitStack() as closing:
        # Both replicas share one folder of prepared records and heads, as they share a volume in
        # production.
        running = [ServiceProcess(folder / "data", **settings).start() for _ in range(2)]
        for replica in running:
            closing.callback(replica.kill)
        for replica in running:
            replica.wait_ready()
        one = Session.open(running[0])
        yield one, Session(running[1], one.admin, one.owner, one.analyst)


@pytest.fixture(scope="module", params=["through the proxy", "in turn"])
def cluster(
    request: pytest.FixtureRequest,
    replicas: tuple[Session, Session],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Cluster]:
    services = [session.service for session in replicas]
    if request.param == "in turn":
        if CADDY is not None:
            pytest.skip("caddy is here, and takes turns itself")
        turns = itertools.cycle(service.url for service in services)
        yield Cluster(*replicas, lambda: next(turns))
        return
    if CADDY is None:
        pytest.skip("needs caddy: apt-get install caddy")
    with proxy(tmp_path_factory.mktemp("proxy"), services) as url:
        yield Cluster(*replicas, lambda: url)


@contextmanager
def proxy(folder: Path, replicas: list[ServiceProcess]) -> Iterator[str]:
    """The proxy with its configuration for containers, at other addresses."""
    assert CADDY is not None
    listen = f"http://127.0.0.1:{free_port()}"
    variables = {
        "LISTEN": listen,
        "REPLICAS": " ".join(f"127.0.0.1:{replica.port}" for replica in replicas),
        "HOME": str(folder),
    }
    command = [CADDY, "run", "--adapter", "caddyfile", "--config", str(ROOT / "deploy/Caddyfile")]
    with (folder / "proxy.log").open("wb") as log:
        process = subprocess.Popen(command, env=variables, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                if httpx.get(listen + "/readyz", timeout=REPLY).status_code == 200:
                    break
            except httpx.TransportError:
                pass  # The proxy does not accept connections yet, so the test tries again.
            assert process.poll() is None, (folder / "proxy.log").read_text("utf-8")
            assert time.monotonic() < deadline
            time.sleep(0.1)
        yield listen
    finally:
        process.kill()
        process.wait()


def questions(session: Session) -> int:
    """The number of queries that a replica has replied to, from its log."""
    return session.service.log.read_text("utf-8").count('"route": "/v1/queries"')


def new_graph(cluster: Cluster) -> str:
    """Register a graph at one replica, upload its records there, and grant ε = 1 at the other."""
    graph = cluster.one.ok("GET", "/v1/datasets/star", cluster.one.owner)
    fields = ("kind", "neighbouring", "nodes", "max_degree", "cap")
    name = f"graph-{time.time_ns()}"
    body = {"name": name} | {field: graph[field] for field in fields}
    cluster.one.ok("POST", "/v1/datasets", cluster.one.owner, json=body)
    cluster.one.upload(name, b"source,target\n0,1\n0,2\n")
    path = f"/v1/datasets/{name}/budgets/ada"
    cluster.two.ok("PUT", path, cluster.two.owner, json={"epsilon": "1", "delta": "0"})
    wait_open(cluster)
    return name


def wait_open(cluster: Cluster) -> None:
    """Return when both replicas have opened the same versions, each on its own schedule."""
    deadline = time.monotonic() + PATIENCE
    while len({frozenset(mapped(one.service)) for one in (cluster.one, cluster.two)}) > 1:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def mapped(service: ServiceProcess) -> set[str]:
    """The files of versions that a process has mapped."""
    maps = Path(f"/proc/{service.pid}/maps").read_text("utf-8").splitlines()
    return {line.split()[-1] for line in maps if "/datasets/" in line and "/nodes/" not in line}


def test_what_one_replica_was_given_the_other_answers_from(cluster: Cluster) -> None:
    body = QUERY | {"dataset": new_graph(cluster)}
    answer = cluster.two.ok("POST", "/v1/queries", cluster.two.analyst, json=body)
    path = f"/v1/queries/{answer['id']}"
    assert cluster.one.ok("GET", path, cluster.one.analyst)["answer"] == answer["answer"]
    assert cluster.spent(body["dataset"]) == {"0.5"}


def test_racing_for_what_ten_fit_into_ten_are_answered(cluster: Cluster) -> None:
    name = new_graph(cluster)
    before = questions(cluster.one), questions(cluster.two)

    def ask(_: int) -> httpx.Response:
        return cluster.ask(dataset=name, epsilon="0.1")

    with ThreadPoolExecutor(max_workers=40) as racers:
        replies = list(racers.map(ask, range(RACING)))
    assert Counter(reply.status_code for reply in replies) == {201: FIT, 403: RACING - FIT}
    refused = {reply.json()["type"].rpartition("/")[2] for reply in replies if reply.is_error}
    assert refused == {"budget-exhausted"}
    assert cluster.spent(name) == {"1"}
    shares = questions(cluster.one) - before[0], questions(cluster.two) - before[1]
    assert min(shares) > RACING / 4, f"both replicas take part: {shares}"
    chain = cluster.two.ok("GET", "/v1/ledger/verification", cluster.two.owner)
    assert chain["valid"]


def test_one_key_sent_to_both_is_one_charge(cluster: Cluster) -> None:
    name = new_graph(cluster)

    def ask(_: int) -> httpx.Response:
        return cluster.ask(name, dataset=name)

    with ThreadPoolExecutor(max_workers=8) as racers:
        replies = list(racers.map(ask, range(16)))
    assert {reply.status_code for reply in replies} <= {201, 409}
    assert len({reply.content for reply in replies if reply.status_code == 201}) == 1
    assert cluster.spent(name) == {"0.5"}


def test_a_replica_that_restarts_under_load_costs_nobody_an_answer_or_a_charge(
    cluster: Cluster,
) -> None:
    name = new_graph(cluster)
    restarted = Event()

    def ask(number: int) -> httpx.Response:
        if number == 5:
            assert cluster.two.service.stop() == 0
            cluster.two.service.start().wait_ready()
            restarted.set()
        deadline = time.monotonic() + 180
        while True:
            # Retry with the same idempotency key, as a client does; any replica may receive it.
            with suppress(httpx.TransportError):
                reply = cluster.ask(f"{name}-{number}", dataset=name, epsilon="0.05")
                if reply.status_code not in (409, 502, 503):
                    return reply
            assert time.monotonic() < deadline
            time.sleep(0.2)

    with ThreadPoolExecutor(max_workers=4) as asking:
        replies = list(asking.map(ask, range(20)))
    assert restarted.is_set()
    assert [reply.status_code for reply in replies] == [201] * 20
    assert len({reply.json()["id"] for reply in replies}) == 20
    assert cluster.spent(name) == {"1"}


@pytest.mark.slow
@pytest.mark.parametrize("shared", ["folder", "store"])
def test_what_a_killed_replica_was_preparing_the_other_finishes(
    own_database: str, tmp_path: Path, shared: str
) -> None:
    """No upload is repeated: the other replica reads the records from the shared storage."""
    settings = QUICK | {"PURSE_DATABASE_URL": own_database, "PURSE_UPLOAD_WAIT": "0"}
    with ExitStack() as closing:
        folders = [tmp_path / "data"] * 2
        if shared == "store":
            pytest.importorskip("s3fs", reason="needs the extra `s3`")
            pytest.importorskip("moto", reason="needs the extra `test`")
            from tests.support.stores import store_process

            server = closing.enter_context(store_process())
            settings |= server.settings(address := server.address())
            folders = [tmp_path / "one", tmp_path / "two"]
        running = [ServiceProcess(folder, **settings) for folder in folders]
        for replica in running:
            replica.start()
            closing.callback(replica.kill)
            replica.wait_ready()
        name = f"large-{time.time_ns()}"
        owner = f"owner-{time.time_ns()}"
        one = Session(running[0], running[0].admin_key, "", "")
        body: dict[str, Any] = {"name": owner, "roles": ["owner"]}
        one.owner = one.ok("POST", "/v1/users", one.admin, json=body)["key"]
        two = Session(running[1], one.admin, one.owner, "")
        nodes, step = 200_000, 12
        body = {"name": name, "kind": "graph", "neighbouring": "edge", "nodes": {"count": nodes}}
        body |= {"max_degree": 2 * step, "cap": {"epsilon": "1", "delta": "0"}}
        one.ok("POST", "/v1/datasets", one.owner, json=body)
        edges = "".join(f"{v},{v + k}\n" for v in range(nodes - step) for k in range(1, step))
        headers = {"Content-Type": "text/csv"}
        path = f"/v1/datasets/{name}"
        content = "source,target\n" + edges
        reply = one.ok("PUT", f"{path}/records", one.owner, content=content, headers=headers)
        assert reply["status"] == "preparing"
        running[0].kill()
        assert two.ok("GET", path, two.owner)["version"] == 0
        deadline = time.monotonic() + 240
        # The other replica takes over when the lease of the killed one expires, after a minute.
        while (dataset := two.ok("GET", path, two.owner))["status"] != "ready":
            assert time.monotonic() < deadline, dataset
            time.sleep(1)
        assert dataset["version"] == 1
        if shared == "folder":
            assert list((folders[1] / "incoming").iterdir()) == []
            return
        # The object store contains nothing of the upload any more. The killed replica will sweep
        # its own disk later.
        assert server.objects(address).names("incoming") == {}
        ada = two.ok("POST", "/v1/users", two.admin, json={"name": "ada", "roles": ["analyst"]})
        allowance = {"epsilon": "1", "delta": "0"}
        two.ok("PUT", f"{path}/budgets/ada", two.owner, json=allowance)
        query = QUERY | {"dataset": name}
        assert two.ok("POST", "/v1/queries", ada["key"], json=query)["dataset_version"] == 1
