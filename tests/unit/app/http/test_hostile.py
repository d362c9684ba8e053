"""Malicious bodies on every route that reads JSON: each gets a 4xx and no charge."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest
from fastapi import FastAPI

from app.dashboard.pages import Page
from app.http.openapi import routes_of
from app.http.route import Route
from tests.support.service import Service
from tests.unit.app.http.test_access import PEOPLE, path_of

BAD = {
    "nothing": b"",
    "null": b"null",
    "NaN": b"NaN",
    "NaN inside": b'{"epsilon": NaN, "name": NaN}',
    "Infinity": b'{"epsilon": Infinity}',
    "-Infinity": b'{"epsilon": -Infinity}',
    "1e999": b'{"epsilon": 1e999}',
    "true for a number": b'{"epsilon": true, "name": true}',
    "lone surrogate": b'{"name": "\\ud800"}',
    "lone surrogate in a name": b'{"\\ud800": 1}',
    "zero character": b'{"name": "\\u0000"}',
    "repeated name": b'{"epsilon": 0.1, "epsilon": 9}',
    "deep": b"[" * 100_000,
    "deep and closed": b'{"a":' * 900 + b"1" + b"}" * 900,
    "integer of 5000 digits": b'{"epsilon": ' + b"9" * 5000 + b"}",
    "integer of 300 digits": b'{"epsilon": ' + b"9" * 300 + b', "k": ' + b"9" * 300 + b"}",
    "1e-300": b'{"epsilon": 1e-300}',
    "not UTF-8": b'{"name": "\xff"}',
    "array": b"[1, 2]",
    "text": b'"x"',
    "cut off": b'{"name": "a',
}


NEEDS_NO_BODY = {"/v1/users/{name}/keys"}


@pytest.fixture(scope="module")
def people(shared: Callable[[], AbstractContextManager[Service]]) -> Iterator[Service]:
    """One service for all tests, because nothing here changes it."""
    with shared() as service:
        yield service


@pytest.fixture(scope="module")
def application(people: Service) -> FastAPI:
    application = people.client.app
    assert isinstance(application, FastAPI)
    return application


def json_routes(application: FastAPI) -> list[tuple[str, Route]]:
    return [
        (method, route)
        for route in routes_of(application)
        for method in sorted(route.methods or ())
        if route.body_field is not None
    ]


def caller(route: Route) -> str:
    return next(who for who, role in PEOPLE.items() if role in route.access.roles)


def test_every_kind_of_writing_route_is_walked(application: FastAPI) -> None:
    walked = {f"{method} {route.path}" for method, route in json_routes(application)}
    assert walked == {
        "POST /v1/users",
        "PATCH /v1/users/{name}",
        "PUT /v1/users/{name}/budget",
        "POST /v1/users/{name}/keys",
        "POST /v1/datasets",
        "PUT /v1/datasets/{name}",
        "PUT /v1/datasets/{name}/budgets/{user}",
        "PUT /v1/datasets/{name}/cap",
        "POST /v1/datasets/{name}/requests",
        "POST /v1/datasets/{name}/requests/{id}/decision",
        "PUT /v1/datasets/{name}/source",
        "POST /v1/quotes",
        "POST /v1/queries",
        "POST /mcp",
    }


@pytest.mark.parametrize("body", BAD.values(), ids=BAD.keys())
def test_hostile_json_is_a_422_on_every_route(
    people: Service, application: FastAPI, body: bytes
) -> None:
    headers = {"Content-Type": "application/json"}
    for method, route in json_routes(application):
        if not body and route.path in NEEDS_NO_BODY:
            continue
        reply = people(caller(route), method, path_of(route), content=body, headers=headers)
        assert reply.status_code == 422, (method, route.path, reply.text)
        problem = reply.json()
        assert problem["type"] == "/problems/invalid-request"
        assert problem["errors"]
        assert all(set(error) == {"loc", "type", "msg"} for error in problem["errors"])
    assert people("otto", "GET", "/v1/ledger").json()["items"] == []


@pytest.mark.long
def test_fifty_megabytes_are_too_large_on_every_route(
    people: Service, application: FastAPI
) -> None:
    block = b" " * 2**20

    def chunks() -> Iterator[bytes]:
        yield from [block] * 50

    headers = {"Content-Type": "application/json"}
    for method, route in json_routes(application):
        path = path_of(route)
        for content in (block * 50, chunks()):
            reply = people(caller(route), method, path, content=content, headers=headers)
            assert reply.status_code == 413, (method, route.path)
            assert reply.json()["type"] == "/problems/too-large"


def test_other_media_types_and_encodings_are_415(people: Service, application: FastAPI) -> None:
    for method, route in json_routes(application):
        for headers in (
            {"Content-Type": "text/plain"},
            {"Content-Type": "application/x-www-form-urlencoded"},
            {"Content-Type": "multipart/form-data; boundary=x"},
            {"Content-Type": ""},
            {"Content-Type": "application/json", "Content-Encoding": "gzip"},
        ):
            reply = people(caller(route), method, path_of(route), content=b"{}", headers=headers)
            assert reply.status_code == 415, (method, route.path, headers)


@pytest.mark.parametrize("name", ["%00", "%ff", "%ed%a0%80", "..%2f..", "a" * 5000, "%F0%9F%98%80"])
def test_hostile_names_in_paths_are_not_found(
    people: Service, application: FastAPI, name: str
) -> None:
    for route in routes_of(application):
        if route.access.public or not route.param_convertors or route.body_field is not None:
            continue
        # Pages need a session and are tested in dashboard/test_access.py.
        if isinstance(route, Page):
            continue
        path = route.path.format(**dict.fromkeys(route.param_convertors, name))
        headers = {"Content-Type": "text/csv"}
        for method in route.methods or ():
            reply = people(caller(route), method, path, headers=headers)
            assert reply.status_code in (404, 405, 422), (method, path, reply.text)


@pytest.mark.parametrize("query", ["dataset=%00", "dataset=a%20b", "cursor=%00", "limit=1e3"])
def test_hostile_filters_of_lists_are_a_422(
    people: Service, application: FastAPI, query: str
) -> None:
    filter_name = query.partition("=")[0]
    lists = [
        route
        for route in routes_of(application)
        if filter_name in {parameter.name for parameter in route.dependant.query_params}
        and not route.param_convertors
        and not isinstance(route, Page)  # Pages are tested in dashboard/test_access.py.
    ]
    assert len(lists) >= 2
    for route in lists:
        reply = people(caller(route), "GET", f"{route.path}?{query}")
        assert (reply.status_code, reply.json()["type"]) == (422, "/problems/invalid-request")
