"""The shortest setup for a paid query: users, a graph, records and an allowance."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import httpx

from app.demo.service import ServiceProcess
from tests.support.patience import PATIENCE, REPLY, WAIT

EDGES = "source,target\n" + "".join(f"0,{leaf}\n" for leaf in range(1, 9))
#: All requests share one TLS context: otherwise each would read all certificates of the system,
#: which takes 30 ms.
CERTIFICATES = httpx.create_ssl_context()
QUERY: dict[str, Any] = {
    "dataset": "star",
    "epsilon": "0.5",
    "query": {
        "kind": "top_k",
        "k": 2,
        "utilities": [{"name": "degree"}],
        "sensitivity": "global",
    },
}


@dataclass
class Session:
    """One service and the keys of one user of each role."""

    service: ServiceProcess
    admin: str
    owner: str
    analyst: str

    @classmethod
    def open(cls, service: ServiceProcess) -> Session:
        """Create an owner and an analyst with an allowance of ε = 2 on a ready graph."""
        session = cls(service, service.admin_key, "", "")
        people = {}
        for name, role in (("olympe", "owner"), ("ada", "analyst")):
            body = {"name": name, "roles": [role]}
            people[role] = session.ok("POST", "/v1/users", session.admin, json=body)["key"]
        session.owner, session.analyst = people["owner"], people["analyst"]
        graph = {
            "name": "star",
            "kind": "graph",
            "neighbouring": "edge",
            "nodes": {"count": 12},
            "max_degree": 10,
            "cap": {"epsilon": "5", "delta": "0"},
        }
        session.ok("POST", "/v1/datasets", session.owner, json=graph)
        session.upload("star", EDGES.encode())
        allowance = {"epsilon": "2", "delta": "0"}
        session.ok("PUT", "/v1/datasets/star/budgets/ada", session.owner, json=allowance)
        return session

    def send(self, method: str, path: str, key: str, **request: Any) -> httpx.Response:
        headers = request.pop("headers", {}) | {"Authorization": f"Bearer {key}"}
        if (method, path) == ("POST", "/v1/queries"):
            headers = WAIT | headers
        return httpx.request(
            method,
            self.service.url + path,
            headers=headers,
            timeout=REPLY,
            verify=CERTIFICATES,
            **request,
        )

    def ok(self, method: str, path: str, key: str, **request: Any) -> Any:
        """Sends a request that must succeed and returns its JSON."""
        reply = self.send(method, path, key, **request)
        assert reply.is_success, f"{method} {path}: {reply.status_code} {reply.text}"
        return reply.json()

    def upload(self, name: str, content: bytes, **headers: str) -> None:
        """Send records as CSV and block until they can be queried."""
        headers = {"Content-Type": "text/csv"} | headers
        path = f"/v1/datasets/{name}"
        reply = self.ok("PUT", f"{path}/records", self.owner, content=content, headers=headers)
        deadline = time.monotonic() + PATIENCE
        while reply["status"] != "ready":
            assert reply["status"] == "preparing", reply
            assert time.monotonic() < deadline
            time.sleep(0.1)
            reply = self.ok("GET", path, self.owner)

    def query(self, idempotency_key: str) -> httpx.Response:
        """Send QUERY with an idempotency key."""
        headers = {"Idempotency-Key": idempotency_key}
        return self.send("POST", "/v1/queries", self.analyst, json=QUERY, headers=headers)

    def spent(self) -> str:
        """Returns the ε that the analyst has spent on the graph."""
        [account] = self.ok("GET", "/v1/budgets", self.analyst)["items"]
        return str(account["spent"]["epsilon"])
