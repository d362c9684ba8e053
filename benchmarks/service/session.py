"""One owner and one analyst of a real service process, for what is measured over HTTP."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import httpx

from app.demo.service import ROOT, ServiceProcess
from benchmarks.service.processes import SERVE, Checkout

AMPLE = {"epsilon": "100000", "delta": "0"}
CSV = {"Content-Type": "text/csv"}


class Session:
    """Requests over kept-alive connections; every reply must be a success."""

    def __init__(self, service: ServiceProcess) -> None:
        self.service = service
        self._http = httpx.Client(base_url=service.url, timeout=300)
        self.keys = {"admin": service.admin_key}
        for role in ("owner", "analyst"):
            body = {"name": role, "roles": [role]}
            self.keys[role] = self.send("admin", "POST", "/v1/users", json=body)["key"]

    @classmethod
    @contextmanager
    def opened(
        cls, root: Path = ROOT, command: Sequence[str] = SERVE, **settings: str
    ) -> Iterator[Self]:
        """A session with a fresh service of a checkout, over a folder that ends with the block."""
        with (
            TemporaryDirectory() as folder,
            Checkout(Path(folder) / "data", root, command, settings) as service,
        ):
            yield cls(service)

    def send(self, role: str, method: str, path: str, **request: Any) -> Any:
        headers = request.pop("headers", {}) | {"Authorization": f"Bearer {self.keys[role]}"}
        reply = self._http.request(method, path, headers=headers, **request)
        if not reply.is_success:
            raise RuntimeError(f"{method} {path}: {reply.status_code} {reply.text}")
        return reply.json() if reply.content else None

    def describe(self, body: dict[str, Any], cap: Mapping[str, Any] = AMPLE) -> None:
        """Register a dataset by its public description, with all of its cap for the analyst."""
        self.send("owner", "POST", "/v1/datasets", json=body | {"cap": cap})
        self.send("owner", "PUT", f"/v1/datasets/{body['name']}/budgets/analyst", json=cap)

    def upload(self, name: str, content: bytes, headers: dict[str, str] = CSV) -> float:
        """Send records; the seconds until they are ready to be queried."""
        path, started = f"/v1/datasets/{name}", time.perf_counter()
        reply = self.send("owner", "PUT", f"{path}/records", content=content, headers=headers)
        while reply["status"] != "ready":
            if reply["status"] == "refused":
                raise RuntimeError(f"the records of {name} were refused")
            time.sleep(0.05)
            reply = self.send("owner", "GET", path)
        return time.perf_counter() - started
