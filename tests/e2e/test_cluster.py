"""A service on a cluster: it answers as ever, and fails as ever when the scheduler is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed", reason="needs the extra `cluster`")

from app.demo.service import ServiceProcess
from tests.clusters import cluster
from tests.e2e.conftest import QUICK
from tests.e2e.session import Session

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
def test_a_lost_scheduler_fails_preparations_and_queries(tmp_path: Path) -> None:
    with cluster(tmp_path) as processes:
        settings = QUICK | processes.settings("client") | {"PURSE_CLUSTER_FROM": "0"}
        with ServiceProcess(processes.data, **settings) as service:
            session = Session.open(service)
            session.ok("POST", "/v1/datasets", session.owner, json=TABLE)
            session.upload("rows", ROWS)
            allowance = {"epsilon": "2", "delta": "0"}
            session.ok("PUT", "/v1/datasets/rows/budgets/ada", session.owner, json=allowance)

            def ask(key: str) -> Any:
                headers = {"Idempotency-Key": key, "Prefer": "wait=55"}
                return session.send(
                    "POST", "/v1/queries", session.analyst, json=TREE, headers=headers
                )

            assert ask("before").status_code == 201
            assert processes.scheduler is not None
            processes.scheduler.kill()
            lost = ask("lost")
            assert lost.status_code == 500
            assert lost.json()["type"].endswith("/query-failed")
            assert ask("lost").content == lost.content
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
            shown = session.ok("GET", "/v1/datasets/star", session.owner)
            while shown["status"] == "preparing":
                shown = session.ok("GET", "/v1/datasets/star", session.owner)
            assert shown["version"] == 1
            assert shown["upload"]["errors"][0]["type"] == "internal-error"
            assert list((processes.data / "cluster").iterdir()) == []
            # What was there before answers what is not spread.
            assert session.query("degrees").status_code == 201
