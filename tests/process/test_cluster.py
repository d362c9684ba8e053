"""A service on a cluster gives the same answers, and reports the loss of its scheduler."""

from __future__ import annotations

import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

pytest.importorskip("distributed", reason="needs the extra `cluster`")

from app.demo.service import ServiceProcess
from storage.files.arrays import open_arrays
from storage.files.shared import Shared
from tests.process.conftest import QUICK
from tests.process.session import Session
from tests.support.clusters import cluster
from tests.support.patience import PATIENCE

TABLE: dict[str, Any] = {
    "name": "rows",
    "kind": "table",
    "neighbouring": "add_remove",
    "max_rows": 1000,
    "class_attribute": "c",
    "attributes": [
        {"name": name, "kind": "categorical", "values": ["yes", "no"]} for name in "abc"
    ],
    "cap": {"epsilon": "10", "delta": "0"},
}
TREE = {
    "dataset": "rows",
    "epsilon": "0.5",
    "query": {
        "kind": "tree",
        "algorithm": "evolutionary",
        "positive_class": "yes",
        "population": 20,
        "selected": 5,
    },
}
ROWS = b"a,b,c\n" + b"yes,no,yes\nno,no,no\nyes,yes,yes\n" * 100


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_a_lost_scheduler_fails_preparations_and_queries(
    tmp_path: Path, end: signal.Signals
) -> None:
    with cluster(tmp_path) as processes:
        settings = QUICK | processes.settings("client") | {"PURSE_CLUSTER_FROM": "0"}
        with ServiceProcess(processes.data, **settings) as service:
            session = Session.open(service)
            session.ok("POST", "/v1/datasets", session.owner, json=TABLE)
            session.upload("rows", ROWS)
            allowance = {"epsilon": "2", "delta": "0"}
            session.ok("PUT", "/v1/datasets/rows/budgets/ada", session.owner, json=allowance)

            def ask(key: str) -> Any:
                headers = {"Idempotency-Key": key}
                return session.send(
                    "POST", "/v1/queries", session.analyst, json=TREE, headers=headers
                )

            assert ask("before").status_code == 201
            assert processes.scheduler is not None
            processes.scheduler.send_signal(end)
            lost = ask("lost")
            # The charge of the lost query stays, and its idempotency key runs the query again once
            # the lease has expired.
            assert lost.status_code == 409
            assert lost.json()["type"].endswith("/still-running")
            assert ask("lost").json()["id"] == lost.json()["id"]
            spent = {
                account["dataset"]: account["spent"]["epsilon"]
                for account in session.ok("GET", "/v1/budgets", session.analyst)["items"]
            }
            assert spent["rows"] == "1"
            headers = {"Content-Type": "text/csv"}
            upload = session.send(
                "PUT",
                "/v1/datasets/star/records",
                session.owner,
                content=b"source,target\n0,1\n",
                headers=headers,
            )
            assert upload.status_code in (202, 500)
            dataset = session.ok("GET", "/v1/datasets/star", session.owner)
            while dataset["status"] == "preparing":
                dataset = session.ok("GET", "/v1/datasets/star", session.owner)
            assert dataset["version"] == 1
            assert dataset["upload"]["errors"][0]["type"] == "internal-error"
            assert list((processes.data / "cluster").iterdir()) == []
            # Queries that do not need the cluster still answer, from the version before the failed
            # upload.
            assert session.query("degrees").status_code == 201
            # A query that waits for the lost scheduler delays a stop by at most its own timeout.
            with ThreadPoolExecutor(1) as pool:
                asking = pool.submit(ask, "stopping")
                time.sleep(1)
                begun = time.monotonic()
                assert service.stop() == 0
                assert time.monotonic() - begun < PATIENCE
                with suppress(httpx.TransportError):
                    assert asking.result().status_code == 500


@pytest.mark.slow
def test_workers_that_share_a_store_alone_find_the_same(tmp_path: Path) -> None:
    """No two processes share a folder; the arrays are those that a single process prepares."""
    pytest.importorskip("s3fs", reason="needs the extra `s3`")
    pytest.importorskip("moto", reason="needs the extra `test`")
    from tests.support.stores import store_process

    random = np.random.default_rng(7)
    ends = np.unique(np.sort(random.integers(0, 3000, (20_000, 2)), axis=1), axis=0)
    ends = ends[ends[:, 0] != ends[:, 1]]
    edges = "source,target\n" + "".join(f"{a},{b}\n" for a, b in ends)
    graph = {
        "name": "graph",
        "kind": "graph",
        "neighbouring": "edge",
        "nodes": {"count": 3000},
        "max_degree": 100,
        "cap": {"epsilon": "5", "delta": "0"},
    }

    def prepared(session: Session) -> None:
        session.ok("POST", "/v1/datasets", session.owner, json=graph)
        session.upload("graph", edges.encode())

    alone = tmp_path / "alone"
    with ServiceProcess(alone, **QUICK) as service:
        prepared(Session.open(service))
    with store_process() as server:
        store = server.settings(server.address())
        with cluster(tmp_path / "cluster", store=store) as processes:
            settings = QUICK | processes.settings("client") | {"PURSE_CLUSTER_FROM": "0"}
            with ServiceProcess(processes.data, **settings) as service:
                session = Session.open(service)
                prepared(session)
                session.ok("POST", "/v1/datasets", session.owner, json=TABLE)
                session.upload("rows", ROWS)
                session.ok(
                    "PUT",
                    "/v1/datasets/rows/budgets/ada",
                    session.owner,
                    json={"epsilon": "2", "delta": "0"},
                )
                session.ok("POST", "/v1/queries", session.analyst, json=TREE)
            fetched = [
                {path.name for path in (processes.folder / f"worker-{n}" / "store").rglob("*.npy")}
                for n in (0, 1)
            ]
            assert all(fetched), "both took part"
            shared = server.cached(tmp_path, store["PURSE_STORE"])
            assert [name for name in shared.names("cluster") if name.endswith("plan")] == []
            assert arrays_of(shared, tmp_path) == {
                name: array.tobytes()
                for name, array in open_arrays(alone / "datasets" / "2" / "1", "graph")[1].items()
            }


def arrays_of(shared: Shared, folder: Path) -> dict[str, bytes]:
    """The prepared arrays of the second upload, read from the store."""
    copy = folder / "copy"
    copy.mkdir()
    for name in shared.names("arrays"):
        if name.startswith("arrays/2-"):
            (copy / Path(name).name).write_bytes(shared.read(name))
    return {name: array.tobytes() for name, array in open_arrays(copy, "graph")[1].items()}
