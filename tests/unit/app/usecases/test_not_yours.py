"""For a user without access, an object of others is the same as an absent one, on every route.

An owner and an analyst without datasets request existing objects of others and absent ones. Both
replies are 404 and equal, except for the id of the request.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from fastapi import FastAPI

from app.dashboard.pages import Page
from app.http.openapi import routes_of
from app.http.route import Route
from tests.support.browser import Browser
from tests.support.service import EDGES, GRAPH, Service

STRANGERS = {"oscar": "owner", "ben": "analyst"}
ABSENT = {
    "name": "absent",
    "dataset": "absent",
    "user": "ana",
    "page": "absent",
    "query_id": "00000000-0000-0000-0000-000000000000",
    "id": "0000000000000000",
}
QUERY = {
    "kind": "selection",
    "candidates": {"nodes": "all"},
    "utilities": [{"name": "degree"}],
}
#: Valid request bodies for each route, so that no refusal is due to the body.
SENT: dict[str, dict[str, Any]] = {
    "PUT /v1/datasets/{name}": {"json": {**GRAPH, "name": "triangle"}},
    "PUT /v1/datasets/{name}/nodes": {"content": b"a\nb\n"},
    "PUT /v1/datasets/{name}/records": {"content": EDGES},
    "PUT /v1/datasets/{name}/budgets/{user}": {"json": {"epsilon": "1"}},
    "PUT /v1/datasets/{name}/source": {"json": {"source": "shop", "table": "visits"}},
    "PUT /v1/datasets/{name}/cap": {"json": {"composition_delta": "0"}},
}
SENT |= {
    "POST /v1/datasets/{name}/requests": {"json": {"epsilon": "1", "purpose": "a report"}},
    "POST /v1/datasets/{name}/requests/{id}/decision": {
        "json": {"decision": "grant", "reason": "agreed"}
    },
}
#: Routes that reply the same to everybody.
PUBLIC = {"/problems/{slug}", "/ui/{path:path}", "/ui/help/{page}"}


@pytest.fixture
def theirs(people: Service) -> dict[str, str]:
    """Objects of olga and ana: a dataset with records, an answered query, a key."""
    for name, role in STRANGERS.items():
        people.user(name, role)
    people.dataset("olga")
    people.grant("olga", "triangle", "ana")
    body = {"dataset": "triangle", "epsilon": "0.5", "query": QUERY}
    reply = people("ana", "POST", "/v1/queries", json=body)
    assert reply.status_code == 201
    return {
        "dataset": "triangle",
        "user": "ana",
        "page": "datasets",
        "query_id": reply.json()["id"],
        "id": people.keys["ana"].split("_")[1],
    }


def paths(route: Route, theirs: dict[str, str]) -> tuple[str, str]:
    """A path of the route to an existing object, and one to an absent object."""
    name = "ana" if "/users/{name}" in route.path else theirs["dataset"]
    return route.path.format(**theirs, name=name), route.path.format(**ABSENT)


def same(reply: Any, path: str) -> tuple[Any, ...]:
    """A reply without the id of the request and the name of the object."""
    varying = {"x-request-id", "content-length", "set-cookie"}
    head = sorted((k, v) for k, v in reply.headers.items() if k not in varying)
    text = reply.text.replace(reply.headers["x-request-id"], "").replace(path, "")
    return reply.status_code, head, re.sub(r'"csrf" value="\w*"', "", text)


def named(application: FastAPI) -> list[tuple[str, Route]]:
    return [
        (method, route)
        for route in routes_of(application)
        if route.param_convertors and route.path not in PUBLIC
        for method in sorted(route.methods or ())
    ]


def test_what_is_not_yours_does_not_exist(
    people: Service, application: FastAPI, theirs: dict[str, str]
) -> None:
    browsers = {who: Browser(people, people.keys[who]) for who in STRANGERS}
    for browser in browsers.values():
        browser.get("/ui/keys")
    wrong, walked = [], set()
    for method, route in named(application):
        for who, role in STRANGERS.items():
            if role not in route.access.roles:
                continue
            seen = []
            for path in paths(route, theirs):
                if isinstance(route, Page):
                    browser = browsers[who]
                    reply = browser.client.get(path) if method == "GET" else browser.post(path)
                else:
                    sent = dict(SENT.get(f"{method} {route.path}", {}))
                    if "content" in sent:
                        sent["headers"] = {"Content-Type": "text/csv"}
                    reply = people(who, method, path, **sent)
                seen.append(same(reply, path))
            walked.add(route.path)
            if seen[0] != seen[1] or seen[0][0] != 404:
                wrong.append((method, route.path, who, seen[0][0], seen[1][0]))
    assert wrong == []
    assert len(walked) > 15
    # The objects that strangers could not reach did exist, and were not changed.
    assert people("ana", "GET", f"/v1/queries/{theirs['query_id']}").status_code == 200
    assert people("olga", "GET", "/v1/datasets/triangle").json()["status"] == "ready"


def test_lists_hold_nothing_of_others(people: Service, theirs: dict[str, str]) -> None:
    del theirs
    for who, lists in {
        "oscar": ["/v1/datasets", "/v1/queries", "/v1/ledger"],
        "ben": ["/v1/datasets", "/v1/queries", "/v1/ledger", "/v1/budgets"],
    }.items():
        for path in lists:
            assert people(who, "GET", path).json()["items"] == [], (who, path)
    for path in ("/v1/queries", "/v1/quotes"):
        replies = [
            people("ben", "POST", path, json={"dataset": name, "epsilon": "0.5", "query": QUERY})
            for name in ("triangle", "absent")
        ]
        assert same(replies[0], "") == same(replies[1], "")
        assert replies[0].status_code == 404
