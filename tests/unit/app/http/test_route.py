"""The route class alone: order of checks, limits, and what reaches a route function."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Annotated, Any

import pytest
from fastapi import FastAPI, Query
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from starlette.routing import Match

from app.config.settings import Settings
from app.contract.amounts import Limit
from app.contract.models import Body, Name
from app.engine.admission import Rate
from app.http import handlers, openapi
from app.http.access import CurrentCaller, allow, any_key, anyone
from app.http.declarations import body_limit
from app.http.route import router
from app.main import create_app
from app.telemetry.metrics import Metrics
from storage.people.users import SignedIn, User

OWNER = User(1, "olga", frozenset({"owner"}), False, 0)
ANALYST = User(2, "ana", frozenset({"analyst"}), False, 0)


class Thing(Body):
    name: Name
    cap: Limit
    tags: tuple[str, ...] = ()


class Users:
    def sign_in(self, key: str) -> SignedIn | None:
        user = {"owner-key": OWNER, "analyst-key": ANALYST}.get(key)
        return None if user is None else SignedIn(user, key, stale=False)


@pytest.fixture
def client() -> Iterator[TestClient]:
    app = FastAPI(openapi_url=None)
    handlers.install(app, Metrics())
    routes = router(prefix="/v1")

    @routes.post("/things", dependencies=[allow("owner")])
    def make(thing: Thing) -> dict[str, Any]:
        return {"epsilon": thing.cap.epsilon_nano, "tags": list(thing.tags)}

    @routes.post("/large", dependencies=[allow("owner"), body_limit(2**22)])
    def large(thing: Thing) -> dict[str, int]:
        return {"tags": len(thing.tags)}

    @routes.get("/things", dependencies=[any_key])
    def show(user: CurrentCaller, n: Annotated[int, Query(ge=0)] = 0) -> dict[str, Any]:
        return {"user": user.name, "n": n}

    @routes.get("/boom", dependencies=[anyone])
    def boom() -> None:
        raise RuntimeError("secret record")

    app.include_router(routes)
    app.state.services = SimpleNamespace(
        users=Users(),
        tokens=None,
        database=SimpleNamespace(embedded=True),
        rate=Rate(None),
        settings=SimpleNamespace(body_timeout=30),
    )
    with TestClient(app) as client:
        yield client


GOOD = {"name": "a", "cap": {"epsilon": "0.5"}, "tags": ["x"]}
OWNER_KEY = {"Authorization": "Bearer owner-key"}


def test_a_route_must_say_who_may_call_it() -> None:
    with pytest.raises(TypeError, match="who may call"):
        router().add_api_route("/open", lambda: None)


def test_a_valid_body_arrives_as_its_model(client: TestClient) -> None:
    reply = client.post("/v1/things", json=GOOD, headers=OWNER_KEY)
    assert reply.status_code == 200
    assert reply.json() == {"epsilon": 500_000_000, "tags": ["x"]}


def test_checks_come_in_the_order_of_the_contract(client: TestClient) -> None:
    huge = b"[" * (2**20 + 1)
    wrong_type = {"Content-Type": "text/plain"}

    def status(key: str | None, content: bytes, **headers: str) -> int:
        if key:
            headers["Authorization"] = f"Bearer {key}"
        return client.post("/v1/things", content=content, headers=headers).status_code

    assert status(None, huge, **wrong_type) == 401
    assert status("unknown", huge, **wrong_type) == 401
    assert status("analyst-key", huge, **wrong_type) == 403
    assert status("owner-key", huge, Accept="text/html") == 406
    assert status("owner-key", huge, **wrong_type) == 413
    assert status("owner-key", b"[", **wrong_type) == 415
    assert status("owner-key", b"[", **{"Content-Encoding": "gzip"}) == 415
    assert status("owner-key", b"[", **{"Content-Type": "application/json"}) == 422


def test_a_chunked_body_is_counted_while_it_arrives(client: TestClient) -> None:
    sent = 0

    def chunks() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(50):
            sent += 1
            yield b" " * 2**20

    headers = {**OWNER_KEY, "Content-Type": "application/json"}
    reply = client.post("/v1/things", content=chunks(), headers=headers)
    assert reply.status_code == 413
    assert reply.json()["type"] == "/problems/too-large"


def test_a_route_may_read_longer_bodies(client: TestClient) -> None:
    body = {**GOOD, "tags": ["x" * 100] * 20_000}
    assert client.post("/v1/things", json=body, headers=OWNER_KEY).status_code == 413
    reply = client.post("/v1/large", json=body, headers=OWNER_KEY)
    assert (reply.status_code, reply.json()) == (200, {"tags": 20_000})


def test_problems_are_rfc_9457_and_carry_the_request_id(client: TestClient) -> None:
    reply = client.get("/v1/things")
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.headers["www-authenticate"] == "Bearer"
    problem = reply.json()
    assert problem["type"] == "/problems/unauthenticated"
    assert problem["status"] == 401
    assert problem["request_id"] == reply.headers["x-request-id"]


def test_unknown_paths_and_methods(client: TestClient) -> None:
    assert client.get("/nowhere").json()["type"] == "/problems/not-found"
    reply = client.delete("/v1/things")
    assert (reply.status_code, reply.headers["allow"]) == (405, "GET, HEAD, POST")


def test_an_unexpected_failure_is_one_fixed_reply_and_no_text_in_the_log(
    client: TestClient, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    reply = client.get("/v1/boom")
    assert reply.status_code == 500
    assert reply.json()["type"] == "/problems/internal-error"
    output = capsys.readouterr()
    assert "secret" not in reply.text + output.out + output.err + caplog.text


@pytest.mark.parametrize(
    "body",
    [
        {**GOOD, "MARKER\u20ac": 1},
        {**GOOD, "tags": [{"MARKER": 2}]},
        {**GOOD, "name": "MARKER MARKER"},
        {**GOOD, "cap": {"epsilon": "MARKER"}},
        ["MARKER"],
        "MARKER",
    ],
)
def test_validation_errors_never_repeat_values(client: TestClient, body: Any) -> None:
    reply = client.post("/v1/things", json=body, headers=OWNER_KEY)
    assert reply.status_code == 422
    errors = reply.json()["errors"]
    assert all(set(e) == {"loc", "type", "msg"} for e in errors)
    assert not any("MARKER" in e["msg"] for e in errors)
    # Of a request, an error shows only the name of an unknown field, and only its plain characters.
    where = [part for e in errors for part in e["loc"] if "MARKER" in str(part)]
    assert where in ([], ["MARKER?"])


def test_query_parameters_are_checked(client: TestClient) -> None:
    reply = client.get("/v1/things?n=-1", headers={"Authorization": "bearer analyst-key"})
    assert reply.status_code == 422
    assert reply.json()["errors"][0]["loc"] == ["query", "n"]


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("*/*", 200),
        ("application/*;q=0.1", 200),
        ("text/html, application/json;q=0", 406),
        ("text/html", 406),
        ("text/html, */*;q=0.5", 200),
        ("application/json;q=x", 406),
    ],
)
def test_accept(client: TestClient, accept: str, status: int) -> None:
    assert client.get("/v1/things", headers={**OWNER_KEY, "Accept": accept}).status_code == status


def test_the_quick_comparison_rejects_no_path_of_a_pattern() -> None:
    routes = openapi.routes_of(create_app(Settings()))
    assert len(routes) > 80
    paths = {re.sub(r"\{[^}]*\}", "x", route.path) for route in routes}
    admitted = 0
    for route in routes:
        for path in paths | {f"/below{path}" for path in paths}:
            for root in ("", "/below"):
                scope = {"type": "http", "method": "GET", "path": path, "root_path": root}
                slow, quick = APIRoute.matches(route, dict(scope)), route.matches(dict(scope))
                assert slow == quick
                admitted += quick[0] is not Match.NONE
    assert admitted >= 2 * len(routes)
