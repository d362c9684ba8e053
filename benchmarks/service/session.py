"""One owner and one analyst of a real service process, for what is measured over HTTP."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import httpx

from app.demo.service import ROOT, ServiceProcess
from benchmarks.rounds import memory
from benchmarks.service.processes import Checkout

AMPLE = {"epsilon": "100000", "delta": "0"}
CSV = {"Content-Type": "text/csv"}


class Session:
    """Requests over kept-alive connections; every reply must be a success."""

    def __init__(self, service: ServiceProcess) -> None:
        self.service = service
        self._http = httpx.Client(base_url=service.url, timeout=300)
        self._keys = {"admin": service.admin_key}
        for role in ("owner", "analyst"):
            body = {"name": role, "roles": [role]}
            self._keys[role] = self.send("admin", "POST", "/v1/users", json=body)["key"]

    def key(self, role: str) -> str:
        """What the role signs in with."""
        return str(self._keys[role])

    @classmethod
    @contextmanager
    def opened(cls, root: Path = ROOT, **settings: str) -> Iterator[Self]:
        """A session with a fresh service of a checkout, over a folder that ends with the block."""
        with (
            TemporaryDirectory() as folder,
            Checkout(Path(folder) / "data", root, settings=settings) as service,
        ):
            yield cls(service)

    def send(self, role: str, method: str, path: str, **request: Any) -> Any:
        headers = request.pop("headers", {}) | {"Authorization": f"Bearer {self._keys[role]}"}
        reply = self._http.request(method, path, headers=headers, **request)
        if not reply.is_success:
            raise RuntimeError(f"{method} {path}: {reply.status_code} {reply.text}")
        return reply.json() if reply.content else None

    def register(self, name: str, nodes: dict[str, Any] | None, max_degree: int) -> None:
        """A graph that the analyst may query as often as it likes."""
        public = {
            "name": name,
            "kind": "graph",
            "neighbouring": "edge",
            "max_degree": max_degree,
            "cap": AMPLE,
        }
        body = public if nodes is None else public | {"nodes": nodes}
        self.describe(body)

    def describe(self, body: dict[str, Any]) -> None:
        """Register a dataset by its public description, with an allowance for the analyst."""
        self.send("owner", "POST", "/v1/datasets", json=body)
        self.send("owner", "PUT", f"/v1/datasets/{body['name']}/budgets/analyst", json=AMPLE)

    def upload_nodes(self, name: str, ids: list[int]) -> None:
        """The node list of a graph that was registered without one."""
        content = "".join(f"{node}\n" for node in ids).encode()
        self.send("owner", "PUT", f"/v1/datasets/{name}/nodes", content=content, headers=CSV)

    def upload(self, name: str, file: Path) -> float:
        """Send a compressed edge list; the seconds until it is ready to be queried."""
        headers = CSV | {"Content-Encoding": "gzip"}
        content = file.read_bytes()
        return self.upload_bytes(name, content, headers)

    def upload_bytes(self, name: str, content: bytes, headers: dict[str, str] = CSV) -> float:
        """Send records; the seconds until they are ready to be queried."""
        path, started = f"/v1/datasets/{name}", time.perf_counter()
        reply = self.send("owner", "PUT", f"{path}/records", content=content, headers=headers)
        while reply["status"] != "ready":
            if reply["status"] == "refused":
                raise RuntimeError(f"the records of {name} were refused")
            time.sleep(0.05)
            reply = self.send("owner", "GET", path)
        return time.perf_counter() - started

    def top_k(self, name: str, k: int, sensitivity: str) -> float:
        """Ask for k nodes by egocentric betweenness; the seconds until the answer is here."""
        query = {
            "kind": "top_k",
            "k": k,
            "utilities": [{"name": "egocentric_betweenness"}],
            "sensitivity": sensitivity,
        }
        body = {"dataset": name, "epsilon": "1", "query": query}
        started = time.perf_counter()
        reply = self.send("analyst", "POST", "/v1/queries", json=body)
        seconds = time.perf_counter() - started
        if len(set(reply["answer"]["selected"])) != k:
            raise RuntimeError(f"not {k} different nodes of {name}")
        return seconds

    def memory(self, field: str) -> float:
        """A field of the service's /proc status in MB."""
        return memory(field, self.service.pid)
