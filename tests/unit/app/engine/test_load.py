"""Limits on load: queries in flight, requests per key, slow bodies, and costly queries."""

from __future__ import annotations

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPResponse
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import uvicorn

from app.config.settings import Settings
from app.contract.errors import Busy, RateLimited
from app.engine.admission import InFlight, Rate
from app.main import create_app
from tests.support.patience import PATIENCE, REPLY, WAIT
from tests.support.service import Service
from tests.unit.app.engine.test_answering import heavy, hold  # noqa: F401 - a fixture
from tests.unit.app.routes.test_ledger import QUERY, ask

BODY = {"dataset": "triangle", "epsilon": "0.001", "query": QUERY}


@pytest.fixture
def settings(settings: Settings, request: pytest.FixtureRequest) -> Settings:
    return settings.model_copy(update={"workers": 1, **getattr(request, "param", {})})


def configured(**settings: Any) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("settings", [settings], indirect=True)


@pytest.fixture
def shop(people: Service) -> Service:
    people.dataset("olga")
    people.user("ben", "analyst")
    for analyst in ("ana", "ben"):
        people.grant("olga", "triangle", analyst, "1")
    return people


def later(shop: Service, who: str = "ana") -> httpx.Response:
    headers = {"Prefer": "respond-async"}
    return shop(who, "POST", "/v1/queries", json=BODY, headers=headers)


@pytest.mark.usefixtures("heavy")
@configured(in_flight_per_analyst=2, in_flight_total=3)
def test_queries_in_flight_are_capped_after_the_accounts_are_looked_at(shop: Service) -> None:
    gate = hold(shop)
    assert [later(shop).status_code for _ in range(2)] == [202, 202]
    refused = later(shop)
    assert (refused.status_code, refused.json()["type"]) == (429, "/problems/rate-limited")
    assert refused.headers["Retry-After"] == "1"
    # Errors of the request, and refusals by an account or by the cap of the dataset, come before
    # the refusal for load, because to wait would not help.
    assert ask(shop, "nowhere").status_code == 404
    exhausted = ask(shop, "triangle", epsilon="5")
    assert (exhausted.status_code, exhausted.json()["type"]) == (403, "/problems/budget-exhausted")
    assert shop.grant("olga", "triangle", "ana", "100").status_code == 200
    exhausted = ask(shop, "triangle", epsilon="50")
    assert (exhausted.status_code, exhausted.json()["type"]) == (403, "/problems/cap-exhausted")
    # A query that the accounts could pay is refused while too many queries run. No refused query is
    # charged.
    assert ask(shop, "triangle", epsilon="0.001").status_code == 429
    assert later(shop, "ben").status_code == 202
    full = later(shop, "ben")
    assert (full.status_code, full.json()["type"]) == (503, "/problems/busy")
    assert full.headers["Retry-After"] == "1"
    gate.set()
    (one,) = shop("ben", "GET", "/v1/queries").json()["items"]
    shop("ben", "GET", f"/v1/queries/{one['id']}", headers=WAIT)
    assert later(shop, "ben").status_code == 202


@pytest.mark.long
@configured(in_flight_per_analyst=1, release_interval=2.0)
def test_a_query_counts_until_its_deadline(shop: Service) -> None:
    started = time.monotonic()
    assert later(shop).status_code == 202
    time.sleep(0.2)  # The work has ended, but the deadline has not come.
    while later(shop).status_code == 429:
        time.sleep(0.02)
    assert time.monotonic() - started >= 2.0


@pytest.mark.usefixtures("heavy")
@configured(in_flight_per_analyst=1)
def test_a_cancelled_query_gives_its_place_in_flight_back_at_once(shop: Service) -> None:
    gate = hold(shop)
    for _ in range(3):
        waiting = later(shop)
        assert waiting.status_code == 202
        assert later(shop).status_code == 429
        assert shop("ana", "DELETE", waiting.headers["Location"]).status_code == 204
    gate.set()
    assert ask(shop, "triangle").status_code == 201


@configured(in_flight_per_analyst=1)
def test_refusals_and_replays_take_no_place(shop: Service) -> None:
    key = {"Idempotency-Key": "k"}
    assert shop("ana", "POST", "/v1/queries", json=BODY, headers=key).status_code == 201
    for _ in range(3):
        assert ask(shop, "triangle", epsilon="50").status_code == 403
        replay = shop("ana", "POST", "/v1/queries", json=BODY, headers=key)
        assert replay.headers["Idempotency-Replayed"] == "true"
    assert ask(shop, "triangle").status_code == 201


@pytest.mark.long
def test_two_hundred_at_once_are_let_through_by_default(shop: Service) -> None:
    body = {**BODY, "epsilon": "0.001"}
    with ThreadPoolExecutor(200) as threads:
        replies = list(
            threads.map(lambda _: shop("ana", "POST", "/v1/queries", json=body), range(200))
        )
    assert {reply.status_code for reply in replies} == {201}


@configured(rate_limit="5/minute")
def test_each_key_has_a_rate_of_its_own(shop: Service) -> None:
    statuses = [shop("ben", "GET", "/v1/me").status_code for _ in range(6)]
    assert statuses == [200] * 5 + [429]
    refused = shop("ben", "GET", "/v1/me")
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    # The rate limit counts and refuses only queries that could be charged. So the first two queries
    # get another error.
    assert ask(shop, "nowhere", "ben").status_code == 404
    assert ask(shop, "triangle", "ben", epsilon="50").status_code == 403
    assert ask(shop, "triangle", "ben").status_code == 429
    assert shop("ana", "GET", "/v1/me").status_code == 200
    assert shop.client.get("/healthz").status_code == 200


def test_in_flight_counts() -> None:
    gate = InFlight(2, 3)
    gate.enter(1)
    gate.enter(1)
    with pytest.raises(RateLimited):
        gate.enter(1)
    gate.enter(2)
    with pytest.raises(Busy):
        gate.enter(3)
    gate.leave(1)
    gate.enter(3)
    gate.leave(3)
    gate.leave(1)
    gate.leave(2)
    for _ in range(2):
        gate.enter(7)


def test_a_few_analysts_never_keep_the_others_out() -> None:
    gate = InFlight(4, 16, shares=True)
    for analyst in range(4):
        for _ in range(4):
            gate.enter(analyst)
    # Five analysts have queries, so the fifth may have a fifth of the total of 16, which is 3.
    for _ in range(3):
        gate.enter(4)
    with pytest.raises(Busy):
        gate.enter(4)
    gate.leave(0)
    with pytest.raises(Busy):
        gate.enter(0)
    for analyst in range(5, 16):
        gate.enter(analyst)
    # With each new analyst the equal share became smaller. For a seventeenth it would be 16 // 17 =
    # 0.
    assert gate.total == 29
    with pytest.raises(Busy):
        gate.enter(16)


def test_shares_together_are_at_most_twice_the_total() -> None:
    gate = InFlight(100, 100, shares=True)
    for analyst in range(100):
        with suppress(Busy, RateLimited):
            while True:
                gate.enter(analyst)
    assert gate.total == 200


def test_a_rate_may_be_left_out() -> None:
    rate = Rate(None)
    for _ in range(100):
        rate.count("key")
    with pytest.raises(ValueError):
        Settings(rate_limit="as many as you like")


@pytest.mark.long
@pytest.mark.parametrize("path", ["/v1/queries", "/v1/datasets/triangle/records"])
def test_a_body_that_does_not_come_is_given_up(
    settings: Settings, path: str, fast_lane: bool
) -> None:
    """A real connection that sends the start of a body and then nothing."""
    impatient = settings.model_copy(update={"body_timeout": 3.0})
    app = create_app(impatient, fast_lane=fast_lane)
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="on"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    try:
        while not server.started:
            time.sleep(0.02)
        with httpx.Client(base_url=url, timeout=REPLY) as client:
            root = settings.bootstrap_key_file.read_text()
            roles = ["owner", "analyst"]
            headers = {"Authorization": f"Bearer {root}"}
            created = client.post("/v1/users", json={"name": "x", "roles": roles}, headers=headers)
            key = created.json()["key"]
            graph = {
                "name": "triangle",
                "kind": "graph",
                "nodes": {"count": 3},
                "cap": {"epsilon": "1"},
                "neighbouring": "edge",
            }
            own = {"Authorization": f"Bearer {key}"}
            assert client.post("/v1/datasets", json=graph, headers=own).status_code == 201
        method, kind = ("POST", "application/json") if "queries" in path else ("PUT", "text/csv")
        begun = time.monotonic()
        with socket.create_connection((urlsplit(url).hostname, urlsplit(url).port)) as slow:
            slow.settimeout(PATIENCE)
            slow.sendall(
                f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
                f"Content-Type: {kind}\r\nContent-Length: 100\r\n\r\nsource".encode()
            )
            reply = HTTPResponse(slow)
            reply.begin()
            text = reply.read().decode()
        assert time.monotonic() - begun < Settings.model_fields["body_timeout"].default
        assert reply.status == 408
        assert "/problems/request-timeout" in text
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        listening.close()


@configured(query_memory=1)
def test_a_query_that_never_fits_is_refused_free_and_at_its_quote(shop: Service) -> None:
    """Its public worst case decides, not its work on these few records."""
    for path in ("/v1/queries", "/v1/quotes"):
        reply = shop("ana", "POST", path, json=BODY)
        assert (reply.status_code, reply.json()["type"]) == (422, "/problems/too-costly")
        assert reply.json()["limit"] == "1 bytes"
        assert reply.json()["lower"] == ["utilities"]
    (account,) = shop("ana", "GET", "/v1/budgets").json()["items"]
    assert account["spent"]["epsilon"] == "0"


@configured(query_limit=1e-6)
def test_a_query_that_may_take_too_long_is_refused_free_and_at_its_quote(shop: Service) -> None:
    """The public worst case decides, on these few records as on any others."""
    texts = set()
    for path in ("/v1/queries", "/v1/quotes"):
        reply = shop("ana", "POST", path, json=BODY)
        assert (reply.status_code, reply.json()["type"]) == (422, "/problems/too-costly")
        assert reply.json()["limit"] == "1e-06 seconds"
        assert reply.json()["cost"].endswith(" seconds")
        texts.add(reply.json()["cost"])
    assert len(texts) == 1
    (account,) = shop("ana", "GET", "/v1/budgets").json()["items"]
    assert account["spent"]["epsilon"] == "0"
