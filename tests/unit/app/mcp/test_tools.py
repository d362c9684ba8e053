"""The tools of agents by the official SDK: the replies, refusals and limits of the API."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi.testclient import TestClient

from app.main import create_app
from tests.support.agents import MODES, Agent, call
from tests.support.patience import WAIT
from tests.support.service import Service, settings_on

EDGES: dict[str, Any] = {"kind": "statistic", "statistic": "edges"}
ASK: dict[str, Any] = {"dataset": "triangle", "epsilon": "0.1", "query": EDGES}


@pytest.fixture
def granted(people: Service) -> Service:
    """A graph with an allowance of 1 for ana, and one that she may not see."""
    people.dataset("olga")
    people.dataset("olga", name="hidden")
    assert people.grant("olga", "triangle", "ana").status_code == 200
    return people


def limited(service: Service, **restrictions: Any) -> str:
    reply = service("ana", "POST", "/v1/users/ana/keys", json=restrictions)
    assert reply.status_code == 201, reply.text
    service.keys["agent"] = reply.json()["key"]
    return str(reply.json()["key"])


@pytest.mark.parametrize("mode", MODES)
def test_an_agent_lists_describes_quotes_asks_and_verifies(granted: Service, mode: str) -> None:
    agent = Agent(granted, limited(granted, epsilon="0.25"), mode)

    async def session(client: Any) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools) == ["datasets", "describe", "quote", "ask", "answers", "verify"]
        assert [name for name, tool in tools.items() if not tool.annotations.read_only_hint] == [
            "ask"
        ]
        assert "receipt" in client.instructions

        listed = await call(client, "datasets")
        assert [one["name"] for one in listed["items"]] == ["triangle"]
        assert listed["budgets"]["key"]["remaining"]["epsilon"] == "0.25"

        described = await call(client, "describe", dataset="triangle", kind="statistic")
        assert described["dataset"]["neighbouring"] == "edge"
        assert "statistic" in described["query"]["parameters"]
        for kind in described["kinds"]:
            quote = await call(client, "quote", **{**ASK, "query": kind["example"]})
            assert quote["charge"]["epsilon"] == "0.1", kind

        reply = await call(client, "ask", **ASK)
        assert reply["status"] == "answered"
        assert reply["charge"]["epsilon"] == "0.1"
        assert len(reply["receipt"]) == 64
        assert await call(client, "answers", id=reply["id"]) == reply
        history = await call(client, "answers", dataset="triangle", limit=1)
        assert [one["id"] for one in history["items"]] == [reply["id"]]
        assert (await call(client, "verify"))["first_bad"] is None

        assert (await call(client, "ask", **ASK))["status"] == "answered"
        refused = await call(client, "ask", **ASK)
        assert refused["type"] == "/problems/budget-exhausted"
        assert refused["largest_affordable"]["epsilon"] == "0.05"

    agent.run(session)
    assert granted.spent() == "0.2"


def test_one_idempotency_key_is_one_charge_over_both_doors(granted: Service) -> None:
    agent = Agent(granted, granted.keys["ana"])
    by_tool = agent.call("ask", **ASK, idempotency_key="once")
    again = granted("ana", "POST", "/v1/queries", json=ASK, headers={"Idempotency-Key": "once"})
    assert again.headers["idempotency-replayed"] == "true"
    assert again.json() == by_tool == agent.call("ask", **ASK, idempotency_key="once")
    assert granted.spent() == "0.1"
    other = agent.call("ask", **{**ASK, "epsilon": "0.2"}, idempotency_key="once")
    assert other["type"] == "/problems/idempotency-key-reused"


def test_refusals_are_those_of_the_api(granted: Service) -> None:
    agent = Agent(granted, granted.keys["ana"])
    for tool, path, body in (
        ("ask", "/v1/queries", {**ASK, "dataset": "hidden"}),
        ("ask", "/v1/queries", {**ASK, "dataset": "absent"}),
        ("ask", "/v1/queries", {**ASK, "epsilon": "5"}),
        ("quote", "/v1/quotes", {**ASK, "query": {"kind": "clustering", "clusters": 2}}),
    ):
        by_tool = agent.call(tool, **body)
        by_route = granted("ana", "POST", path, json=body).json()
        assert {**by_tool, "request_id": ""} == {**by_route, "request_id": ""}, body
    hidden, absent = (agent.call("describe", dataset=name) for name in ("hidden", "absent"))
    assert {**hidden, "request_id": ""} == {**absent, "request_id": ""}
    assert hidden["type"] == "/problems/not-found"
    assert granted.spent() == "0"


@pytest.mark.long
def test_an_answer_leaves_at_its_deadline(begun: Any, tmp_path: Path) -> None:
    """Before its release, an answer is in no reply of any tool."""
    settings = settings_on(tmp_path / "data").model_copy(update={"release_interval": 6.0})
    shutil.copytree(begun[0], settings.data)
    with TestClient(create_app(settings)) as client:
        service = Service(client, settings)
        service.keys = dict(begun[1])
        service.dataset("olga")
        service.grant("olga", "triangle", "ana")
        agent = Agent(service, service.keys["ana"])
        running = agent.call("ask", **ASK, wait=0)
        early = agent.call("answers", id=running["id"], wait=0)
        assert (running["status"], early["status"]) == ("running", "running")
        assert not {"answer", "receipt"} & (running.keys() | early.keys())
        answered = agent.call("answers", id=running["id"])
        assert answered["status"] == "answered"
        begin, end = (datetime.fromisoformat(one) for one in _times(service, running["id"]))
        assert (end - begin).total_seconds() >= 5.9


def _times(service: Service, id: str) -> tuple[str, str]:
    (listed,) = service("ana", "GET", "/v1/queries").json()["items"]
    assert listed["id"] == id
    return listed["created"], listed["released"]


RACING, FIT = 24, 6


def test_calls_through_both_doors_never_overspend_a_key(granted: Service) -> None:
    """1,000 calls on two replicas: tests/process/test_agents.py."""
    agent = Agent(granted, limited(granted, epsilon=f"0.{FIT}"))
    headers = WAIT | {"Authorization": f"Bearer {granted.keys['agent']}"}

    async def session(client: Any) -> list[int]:
        transport = httpx2.ASGITransport(app=granted.client.app)
        async with httpx2.AsyncClient(transport=transport, headers=headers) as http:

            async def by_route() -> int:
                reply = await http.post("http://127.0.0.1/v1/queries", json=ASK)
                return int(reply.status_code)

            async def by_tool() -> int:
                reply = await call(client, "ask", **ASK)
                return 201 if reply["status"] == "answered" else int(reply["status"])

            calls = [one() for one in (by_route, by_tool) for _ in range(RACING // 2)]
            return await asyncio.gather(*calls)

    statuses = Counter(agent.run(session))
    assert statuses == {201: FIT, 403: RACING - FIT}
    assert granted.spent() == f"0.{FIT}"


def test_every_role_sees_what_it_sees_over_the_api(granted: Service) -> None:
    paid = granted("ana", "POST", "/v1/queries", json=ASK).json()
    names: dict[str, Any] = {}
    for who in ("ada", "olga", "otto"):
        agent = Agent(granted, granted.keys[who])
        listed = agent.call("datasets")
        assert listed["budgets"] == {}
        assert listed["items"] == granted(who, "GET", "/v1/datasets").json()["items"]
        names[who] = agent.call("describe", dataset="triangle")
        assert agent.call("ask", **ASK)["status"] == 403
        assert agent.call("quote", **ASK)["status"] == 403
        seen = agent.call("answers", id=paid["id"])
        assert seen == granted(who, "GET", f"/v1/queries/{paid['id']}").json() or who == "ada"
        assert "answer" not in seen
    # An admin sees only the name of a dataset. An example query would show which attributes it has.
    assert names["ada"] == {"dataset": {"name": "triangle"}, "kinds": []}
    assert names["olga"]["kinds"]
    assert granted.spent() == "0.1"


@pytest.mark.parametrize(
    ("tool", "arguments", "loc"),
    [
        ("ask", {**ASK, "epsilon": True}, ["arguments", "epsilon"]),
        ("ask", {**ASK, "epsilon": "1e-400"}, ["arguments", "epsilon"]),
        ("ask", {**ASK, "surprise": 1}, ["arguments", "surprise"]),
        ("ask", {**ASK, "wait": "10"}, ["arguments", "wait"]),
        ("ask", {**ASK, "idempotency_key": "ü"}, ["arguments", "idempotency_key"]),
        ("ask", {}, ["arguments", "query"]),
        ("quote", {**ASK, "target": {"error": -1}}, ["arguments", "target", "error"]),
        ("datasets", {"limit": 0}, ["arguments", "limit"]),
        ("datasets", {"cursor": "x"}, ["query", "cursor"]),
        ("describe", {}, ["arguments"]),
        ("describe", {"dataset": "../etc"}, ["arguments", "dataset"]),
        ("describe", {"kind": "sql"}, ["arguments", "kind"]),
        ("answers", {"dataset": "a b"}, ["arguments", "dataset"]),
        ("verify", {"all": True}, ["arguments", "all"]),
    ],
)
def test_hostile_arguments_are_refused_and_not_repeated(
    hostile: Agent, tool: str, arguments: dict[str, Any], loc: list[str]
) -> None:
    refused = hostile.call(tool, **arguments)
    assert refused["type"] == "/problems/invalid-request"
    assert loc in [error["loc"] for error in refused["errors"]]
    assert all(set(error) == {"loc", "type", "msg"} for error in refused["errors"])


@pytest.fixture(scope="module")
def hostile(shared: Any) -> Any:
    with shared() as service:
        yield Agent(service, service.keys["ana"])


def test_an_unexpected_failure_tells_nothing(
    granted: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise KeyError("a private value")

    monkeypatch.setattr("app.usecases.agents.datasets_and_budgets", broken)
    refused = Agent(granted, granted.keys["ana"]).call("datasets")
    assert refused["type"] == "/problems/internal-error"
    assert "private" not in json.dumps(refused)
