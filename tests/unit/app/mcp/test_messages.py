"""Messages to ``/mcp``: who may send them, how many, and what is refused before the SDK."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

from app.main import create_app
from tests.support.agents import Agent
from tests.support.service import Service, settings_on

LIST: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
ACCEPT = {"Accept": "application/json, text/event-stream"}


def send(service: Service, who: str | None, **sent: Any) -> Any:
    return service(who, "POST", "/mcp", headers=ACCEPT | sent.pop("headers", {}), **sent)


def test_a_message_needs_a_valid_key(people: Service) -> None:
    people.keys |= {"none": "", "wrong": "pp_x_y", "long": "p" * 9000}
    for who in (None, "none", "wrong", "long"):
        reply = send(people, who, json=LIST)
        assert reply.status_code == 401
        assert reply.headers["www-authenticate"].startswith("Bearer")
    key_id = people("ana", "GET", "/v1/users/ana/keys").json()["items"][0]["key_id"]
    assert send(people, "ana", json=LIST).status_code == 200
    assert people("ana", "DELETE", f"/v1/keys/{key_id}").status_code == 204
    assert send(people, "ana", json=LIST).status_code == 401


def test_a_session_of_the_dashboard_is_no_key(people: Service) -> None:
    """A page of another site could send the cookie of a session."""
    origin = {"Origin": "http://localhost", "Host": "localhost"}
    form = {"key": people.keys["ana"]}
    entered = people.client.post("/ui/sign-in", data=form, headers=origin, follow_redirects=False)
    cookie = {"Cookie": entered.headers["set-cookie"].partition(";")[0], "Host": "localhost"}
    assert people.client.get("/ui/budgets", headers=cookie).status_code == 200
    assert send(people, None, json=LIST, headers=cookie).status_code == 401


def test_messages_that_are_none(people: Service) -> None:
    for content in (b"[]", b"{}", b'{"jsonrpc":"1.0","method":"ping"}', b'[{"jsonrpc":"2.0"}]'):
        headers = {"Content-Type": "application/json"}
        assert send(people, "ana", content=content, headers=headers).status_code == 422
    twice = b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}'
    assert send(people, "ana", content=twice, headers=headers).status_code == 422
    unknown = send(people, "ana", json={**LIST, "method": "resources/list"}).json()
    assert unknown["error"]["code"] == -32601
    params = {"name": "shell", "arguments": {}}
    no_tool = send(people, "ana", json={**LIST, "method": "tools/call", "params": params}).json()
    assert no_tool["error"]["message"] == "no such tool"
    assert send(people, "ana", json={**LIST, "id": None}).status_code < 500
    assert people("ana", "GET", "/mcp").status_code == 405
    assert people("ana", "DELETE", "/mcp").status_code == 405


def test_messages_and_queries_count_against_one_rate(
    begun: tuple[Path, dict[str, str]], tmp_path: Path
) -> None:
    settings = settings_on(tmp_path / "data").model_copy(update={"rate_limit": "3/hour"})
    shutil.copytree(begun[0], settings.data)
    with TestClient(create_app(settings)) as client:
        service = Service(client, settings)
        service.keys = dict(begun[1])
        assert send(service, "ana", json=LIST).status_code == 200
        assert service("ana", "GET", "/v1/me").status_code == 200
        assert send(service, "ana", json=LIST).status_code == 200
        assert send(service, "ana", json=LIST).status_code == 429
        assert service("ana", "GET", "/v1/me").status_code == 429
        assert service("olga", "GET", "/v1/me").status_code == 200


def test_two_agents_on_one_service_are_two_callers(people: Service) -> None:
    people.dataset("olga", records=None)
    owner, analyst = (Agent(people, people.keys[who]) for who in ("olga", "ana"))
    assert [one["name"] for one in owner.call("datasets")["items"]] == ["triangle"]
    assert analyst.call("datasets")["items"] == []
