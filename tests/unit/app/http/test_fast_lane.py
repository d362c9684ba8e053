"""The fast lane alone: it replies as the route does, and refuses routes that it would not fit."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import Depends, FastAPI, Request
from fastapi.testclient import TestClient
from starlette.responses import Response

from app.engine.admission import Rate
from app.http import handlers
from app.http.access import allow, anyone
from app.http.fast_lane import FastLane
from app.http.route import Route, router
from app.telemetry.metrics import Metrics
from storage.errors import NotFound
from tests.unit.app.http.test_route import GOOD, Thing, Users


class Checked:
    """A route that takes its request and its body alone, and notes what it validates."""

    def __init__(self, fast_lane: bool) -> None:
        self.validated: list[bytes] = []
        app = FastAPI(openapi_url=None)
        routes = router(prefix="/v1")

        @routes.post("/asked", dependencies=[allow("owner", "analyst")])
        async def endpoint(http: Request, thing: Thing) -> Response:
            if thing.name == "boom":
                raise RuntimeError("secret record")
            if thing.name == "none":
                raise NotFound
            return Response(f"{http.state.caller.name} {thing.name}", 201)

        (route,) = routes.routes
        assert isinstance(route, Route)
        handlers.install(app, Metrics(), route if fast_lane else None)
        app.include_router(routes)
        app.state.services = SimpleNamespace(
            users=Users(),
            tokens=None,
            database=SimpleNamespace(embedded=True),
            rate=Rate("9/minute"),
            settings=SimpleNamespace(body_timeout=30),
        )
        self.client = TestClient(app, raise_server_exceptions=False)
        validate = route.validate

        def noted(body: bytes) -> Any:
            self.validated.append(body)
            return validate(body)

        route.validate = noted  # type: ignore[method-assign]

    def __call__(
        self, key: str | None = "owner-key", **sent: Any
    ) -> tuple[int, dict[str, str], str]:
        headers = sent.pop("headers", {}) | ({"Authorization": f"Bearer {key}"} if key else {})
        reply = self.client.post("/v1/asked", headers=headers, **sent)
        reply_headers = dict(reply.headers)
        request_id = reply_headers.pop("x-request-id")
        return reply.status_code, reply_headers, reply.text.replace(request_id, "")


@pytest.mark.parametrize(
    "sent",
    [
        {"json": GOOD},
        {"json": GOOD, "key": None},
        {"json": GOOD, "key": "unknown"},
        {"json": GOOD, "params": {"a": "b"}},
        {"json": GOOD, "headers": {"Accept": "image/png"}},
        {"json": {**GOOD, "name": "boom"}},
        {"json": {**GOOD, "name": "none"}},
        {"json": {**GOOD, "more": 1}},
        {"content": b"{", "headers": {"Content-Type": "application/json"}},
        {"content": b"{}", "headers": {"Content-Type": "text/plain"}},
        {"content": b"", "headers": {"Content-Type": "application/json"}},
        {"content": b"[" * (2**20 + 1), "headers": {"Content-Type": "application/json"}},
    ],
)
def test_the_lane_and_the_route_reply_alike(
    sent: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The clock stands still, so the rate limits of both services end at the same time and Retry-
    # After is equal.
    monkeypatch.setattr("app.engine.admission.time", SimpleNamespace(monotonic=lambda: 0.0))
    lane, route = Checked(fast_lane=True), Checked(fast_lane=False)
    for _ in range(11):  # The last requests exceed the rate limit on both paths.
        assert lane(**sent) == route(**sent)


def test_what_is_sent_again_is_read_once_for_each_sender() -> None:
    route = Checked(fast_lane=True)
    body = json.dumps(GOOD).encode()
    sent = {"content": body, "headers": {"Content-Type": "application/json"}}
    assert [route(**sent)[2] for _ in range(3)] == ["olga a"] * 3
    assert route.validated == [body]
    assert route("analyst-key", **sent)[2] == "ana a"
    assert route.validated == [body] * 2
    wrong = json.dumps({**GOOD, "more": 1}).encode()
    for _ in range(2):
        assert route(content=wrong, headers={"Content-Type": "application/json"})[0] == 422
    assert route.validated == [body] * 2 + [wrong] * 2


def test_a_route_that_takes_more_than_request_and_body_is_refused() -> None:
    routes = router(prefix="/v1")

    @routes.post("/more", dependencies=[allow("owner")])
    async def more(http: Request, thing: Thing, n: int = 0) -> Response:
        del http, thing, n
        return Response()

    @routes.post("/less", dependencies=[allow("owner")])
    async def less(http: Request, n: int) -> Response:
        del http, n
        return Response()

    @routes.post("/open", dependencies=[anyone])
    async def public(http: Request, thing: Thing) -> Response:
        del http, thing
        return Response()

    @routes.post("/dependent", dependencies=[allow("owner"), Depends(lambda: None)])
    async def dependent(http: Request, thing: Thing) -> Response:
        del http, thing
        return Response()

    assert len(routes.routes) == 4
    for route in routes.routes:
        assert isinstance(route, Route)
        with pytest.raises(TypeError):
            FastLane(FastAPI(), route)
