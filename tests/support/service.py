"""A whole service on its own data folder, with users of every role."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.config.settings import Settings
from app.main import create_app
from tests.support.patience import WAIT

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
    """A client of a running service; each call sends the key of the named user."""

    def __init__(self, client: TestClient, settings: Settings) -> None:
        self.client, self.settings = client, settings
        self.keys = {"root": settings.bootstrap_key_file.read_text().strip()}

    def __call__(self, who: str | None, method: str, path: str, **sent: Any) -> httpx.Response:
        headers = dict(sent.pop("headers", {}))
        if who is not None:
            headers["Authorization"] = f"Bearer {self.keys[who]}"
        if (method, path) == ("POST", "/v1/queries"):
            headers = WAIT | headers
        return self.client.request(method, path, headers=headers, **sent)

    def user(self, name: str, *roles: str) -> str:
        """Create a user and store their key, so that calls can be made in their name."""
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

    def spent(self, analyst: str = "ana") -> Any:
        """The spent epsilon of an analyst with one account."""
        (account,) = self(analyst, "GET", "/v1/budgets").json()["items"]
        return account["spent"]["epsilon"]

    def grant(self, owner: str, name: str, analyst: str, epsilon: str = "1") -> httpx.Response:
        path = f"/v1/datasets/{name}/budgets/{analyst}"
        return self(owner, "PUT", path, json={"epsilon": epsilon})


def settings_on(data: Path) -> Settings:
    return Settings(
        data=data,
        database_url=None,
        release_interval=0,
        opening_interval=0,
        workers=2,
        upload_wait=300,
    )


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return settings_on(tmp_path / "data")


#: The users of the test service, one of each role.
PEOPLE = {"ada": "admin", "olga": "owner", "ana": "analyst", "otto": "auditor"}


@pytest.fixture(scope="session")
def begun(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """The data folder of a stopped service with one user of every role, and their keys."""
    data = tmp_path_factory.mktemp("begun") / "data"
    settings = Settings(data=data, database_url=None)
    with TestClient(create_app(settings)) as client:
        service = Service(client, settings)
        for name, role in PEOPLE.items():
            service.user(name, role)
    return data, service.keys


@pytest.fixture(scope="module")
def fast_lane(request: pytest.FixtureRequest) -> bool:
    """Whether queries take the fast lane; tests of queries run with it and without."""
    return bool(getattr(request, "param", True))


@pytest.fixture
def application(settings: Settings, fast_lane: bool, request: pytest.FixtureRequest) -> FastAPI:
    """On an empty folder; where there are people, on a copy of the one that they left."""
    if "people" in request.fixturenames:
        shutil.copytree(request.getfixturevalue("begun")[0], settings.data)
    return create_app(settings, fast_lane=fast_lane)


@pytest.fixture
def service(application: FastAPI, settings: Settings) -> Iterator[Service]:
    with TestClient(application, raise_server_exceptions=False) as client:
        yield Service(client, settings)


@pytest.fixture
def people(service: Service, begun: tuple[Path, dict[str, str]]) -> Service:
    """The service with one user of every role: ada, olga, ana and otto."""
    service.keys = dict(begun[1])
    return service


@pytest.fixture(scope="module")
def shared(
    begun: tuple[Path, dict[str, str]], fast_lane: bool, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[], AbstractContextManager[Service]]:
    """Starts a service like ``people`` for the tests of a module that leave each other alone."""

    @contextmanager
    def start() -> Iterator[Service]:
        settings = settings_on(tmp_path_factory.mktemp("shared") / "data")
        shutil.copytree(begun[0], settings.data)
        application = create_app(settings, fast_lane=fast_lane)
        with TestClient(application, raise_server_exceptions=False) as client:
            service = Service(client, settings)
            service.keys = dict(begun[1])
            yield service

    return start


@pytest.fixture
def client(service: Service) -> TestClient:
    return service.client
