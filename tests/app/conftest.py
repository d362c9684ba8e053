"""A whole service on a folder of its own, and people who use it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.main import create_app
from app.settings import Settings

GRAPH: dict[str, Any] = {
    "name": "triangle",
    "kind": "graph",
    "neighbouring": "edge",
    "nodes": {"count": 5},
    "max_degree": 4,
    "cap": {"epsilon": "10", "delta": "0"},
}
EDGES = b"source,target\n0,1\n1,2\n2,0\n3,4\n"


class Service:
    """A running service as its users see it; every call names the user who makes it."""

    def __init__(self, client: TestClient, settings: Settings) -> None:
        self.client, self.settings = client, settings
        self.keys = {"root": settings.bootstrap_key_file.read_text().strip()}

    def __call__(self, who: str | None, method: str, path: str, **sent: Any) -> httpx.Response:
        headers = dict(sent.pop("headers", {}))
        if who is not None:
            headers["Authorization"] = f"Bearer {self.keys[who]}"
        return self.client.request(method, path, headers=headers, **sent)

    def user(self, name: str, *roles: str) -> str:
        """A new user with a key that calls in their name may use."""
        reply = self("root", "POST", "/v1/users", json={"name": name, "roles": list(roles)})
        assert reply.status_code == 201, reply.text
        self.keys[name] = reply.json()["key"]
        return name

    def dataset(self, owner: str, records: bytes | None = EDGES, **changes: Any) -> str:
        """A registered graph, ready when there are records."""
        body = {**GRAPH, **changes}
        reply = self(owner, "POST", "/v1/datasets", json=body)
        assert reply.status_code == 201, reply.text
        if records is not None:
            reply = self.upload(owner, body["name"], records)
            assert reply.status_code == 201, reply.text
        return str(body["name"])

    def upload(
        self, owner: str, name: str, content: Any, media_type: str = "text/csv", **headers: str
    ) -> httpx.Response:
        headers["Content-Type"] = media_type
        path = f"/v1/datasets/{name}/records"
        return self(owner, "PUT", path, content=content, headers=headers)

    def grant(self, owner: str, name: str, analyst: str, epsilon: str = "1") -> httpx.Response:
        path = f"/v1/datasets/{name}/budgets/{analyst}"
        return self(owner, "PUT", path, json={"epsilon": epsilon})


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(
        data=tmp_path / "data", database_url=None, release_interval=0, workers=2, upload_wait=60
    )


@pytest.fixture
def application(settings: Settings) -> FastAPI:
    return create_app(settings)


@pytest.fixture
def service(application: FastAPI, settings: Settings) -> Iterator[Service]:
    with TestClient(application, raise_server_exceptions=False) as client:
        yield Service(client, settings)


@pytest.fixture
def people(service: Service) -> Service:
    """The service with one user of every role: ada, olga, ana and otto."""
    service.user("ada", "admin")
    service.user("olga", "owner")
    service.user("ana", "analyst")
    service.user("otto", "auditor")
    return service


@pytest.fixture
def client(service: Service) -> TestClient:
    return service.client
