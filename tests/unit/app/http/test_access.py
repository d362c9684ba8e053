"""Access to every route by every role, tested over all routes of the application."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi import FastAPI

from app.dashboard.pages import Page
from app.http.access import ROLES
from app.http.openapi import routes_of
from app.http.route import Route
from tests.support.service import Service

PEOPLE = {"ada": "admin", "olga": "owner", "ana": "analyst", "otto": "auditor"}

#: The roles that may use each method and path. "key" is any valid key, "" needs no key.
CONTRACT = {
    "GET /healthz": "",
    "GET /readyz": "",
    "GET /version": "",
    "GET /metrics": "",
    "GET /docs": "",
    "GET /": "",
    "GET /openapi.json": "",
    "GET /problems": "",
    "GET /problems/{slug}": "",
    "GET /v1/me": "key",
    "POST /v1/users": "admin",
    "GET /v1/users": "admin",
    "PATCH /v1/users/{name}": "admin",
    "POST /v1/users/{name}/keys": "key",
    "GET /v1/users/{name}/keys": "key",
    "DELETE /v1/keys/{id}": "key",
    "POST /v1/datasets": "owner",
    "PUT /v1/datasets/{name}": "owner",
    "PUT /v1/datasets/{name}/nodes": "owner",
    "PUT /v1/datasets/{name}/records": "owner",
    "DELETE /v1/datasets/{name}/records": "owner",
    "GET /v1/datasets": "key",
    "GET /v1/datasets/{name}": "key",
    "GET /v1/sources": "owner",
    "PUT /v1/datasets/{name}/source": "owner",
    "GET /v1/datasets/{name}/source": "owner",
    "DELETE /v1/datasets/{name}/source": "owner",
    "POST /v1/datasets/{name}/source/pull": "owner",
    "GET /v1/datasets/{name}/mock": "analyst owner auditor",
    "PUT /v1/datasets/{name}/budgets/{user}": "owner",
    "GET /v1/datasets/{name}/budgets": "owner auditor",
    "PUT /v1/datasets/{name}/cap": "owner",
    "POST /v1/datasets/{name}/requests": "analyst",
    "GET /v1/datasets/{name}/requests": "owner analyst",
    "POST /v1/datasets/{name}/requests/{id}/decision": "owner",
    "DELETE /v1/datasets/{name}/requests/{id}": "owner analyst",
    "GET /v1/certificate-keys": "key",
    "GET /v1/queries/{query_id}/certificate": "analyst",
    "GET /v1/datasets/{name}/certificate": "owner auditor",
    "GET /v1/budgets": "analyst",
    "GET /v1/notices": "key",
    "GET /v1/budgets/{dataset}/history": "analyst",
    "POST /v1/quotes": "analyst",
    "POST /v1/queries": "analyst",
    "GET /v1/queries": "analyst owner auditor",
    "GET /v1/queries/{query_id}": "analyst owner auditor",
    "GET /v1/queries/{query_id}/answer": "analyst",
    "DELETE /v1/queries/{query_id}": "analyst",
    "GET /v1/ledger": "analyst owner auditor",
    "GET /v1/ledger/verification": "analyst owner auditor",
    "GET /v1/audit": "auditor",
    "PUT /v1/users/{name}/budget": "admin",
    "GET /v1/catalogue": "key",
    "POST /mcp": "key",
}


def routes(application: FastAPI) -> dict[str, Route]:
    return {
        f"{method} {route.path}": route
        for route in routes_of(application)
        if not isinstance(route, Page)  # Pages are tested in dashboard/test_access.py.
        for method in route.methods or ()
    }


def path_of(route: Route) -> str:
    """A path of the route with names of absent objects."""
    values = {"query_id": "00000000-0000-0000-0000-000000000000"}
    names = {name: values.get(name, "absent") for name in route.param_convertors}
    return route.path.format(**names)


def test_the_routes_are_those_of_the_contract(application: FastAPI) -> None:
    served = {
        name: ""
        if route.access.public
        else ("key" if route.access.roles == ROLES else " ".join(sorted(route.access.roles)))
        for name, route in routes(application).items()
    }
    expected = {name: " ".join(sorted(who.split())) for name, who in CONTRACT.items()}
    assert served == expected


def test_every_role_on_every_route(people: Service, application: FastAPI) -> None:
    wrong: list[Any] = []
    for name, route in routes(application).items():
        method, path = name.split()[0], path_of(route)
        nobody = people(None, method, path).status_code
        if route.access.public:
            wrong += [(name, None, nobody)] * (nobody in (401, 403))
            continue
        wrong += [(name, None, nobody)] * (nobody != 401)
        for who, role in PEOPLE.items():
            status = people(who, method, path).status_code
            refused = status == 403
            wrong += [(name, who, status)] * (refused == (role in route.access.roles))
            wrong += [(name, who, status)] * (status >= 500)
    assert wrong == []


@pytest.mark.parametrize("who", [None, *PEOPLE])
def test_role_comes_before_everything_about_the_body(
    people: Service, application: FastAPI, who: str | None
) -> None:
    for name, route in routes(application).items():
        if route.access.public or (who and PEOPLE[who] in route.access.roles):
            continue
        expected = 401 if who is None else 403
        for headers in ({}, {"Content-Type": "nonsense"}, {"Content-Length": str(10**9)}):
            method = name.split()[0]
            reply = people(who, method, path_of(route), content=b"{", headers=headers)
            assert reply.status_code == expected, name


def test_every_problem_has_its_shape_and_an_explanation(
    people: Service, application: FastAPI
) -> None:
    for name, route in routes(application).items():
        for who in (None, *PEOPLE):
            reply = people(who, name.split()[0], path_of(route))
            if reply.status_code < 400:
                continue
            problem = reply.json()
            assert reply.headers["content-type"] == "application/problem+json", name
            assert problem["status"] == reply.status_code
            assert problem["request_id"] == reply.headers["x-request-id"]
            assert problem["detail"], name
            explained = people.client.get(problem["type"])
            assert explained.status_code == 200
            assert explained.json()["status"] == problem["status"]
            assert explained.json()["title"] == problem["title"]


def test_no_parameter_is_ignored(people: Service, application: FastAPI) -> None:
    """An unknown parameter is reported before all errors but a wrong role and an invalid body."""
    count = 0
    for name, route in routes(application).items():
        if route.access.public:
            continue
        who = next(who for who, role in PEOPLE.items() if role in route.access.roles)
        sent = {} if route.body_field is None else {"json": {}}
        method, path = name.split()[0], path_of(route)
        errors = people(who, method, f"{path}?limits=1&x%00=2", **sent).json().get("errors", [])
        loc = [error["loc"] for error in errors]
        if loc and loc[0][0] == "body":
            continue  # This route refuses the empty body before it reads parameters.
        assert loc == [["query", "limits"], ["query", "x?"]], name
        count += 1
    assert count > 15


def test_allow_lists_every_method_of_a_path(people: Service) -> None:
    for path, allowed in (
        ("/v1/users", "GET, HEAD, POST"),
        ("/v1/datasets/x/records", "DELETE, PUT"),
        ("/v1/datasets/x/budgets/y", "PUT"),
        ("/healthz", "GET, HEAD"),
    ):
        reply = people("ada", "PATCH", path)
        assert (reply.status_code, reply.headers["allow"]) == (405, allowed)


def test_paths_that_are_none(people: Service) -> None:
    for path in ("/v2", "/v1", "/v1/", "/v1/me/", "/v1/../etc/passwd", "/static/../main.py"):
        reply = people.client.get(path)
        assert (reply.status_code, reply.json()["type"]) == (404, "/problems/not-found"), path
