"""Durations that follow records are not published: every route that handles records says so."""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

from fastapi import FastAPI

from app.http.openapi import routes_of
from app.http.route import Route
from app.usecases import records
from tests.support.service import Service

HANDLE = {records.take_nodes, records.take_records, records.withdraw}


def test_the_routes_that_reach_records_are_those_that_declare_it(application: FastAPI) -> None:
    routes = routes_of(application)
    reaching = {_name(one) for one in routes if HANDLE & set(reached(one.endpoint))}
    assert reaching == {_name(one) for one in routes if one.takes_records}
    for end, count in {"nodes": 2, "records": 3, "source/pull": 2, "withdraw": 1}.items():
        assert sum(name.endswith(f"/{{name}}/{end}") for name in reaching) == count, end


def test_no_duration_of_a_pull_is_published(people: Service, application: FastAPI) -> None:
    path = "/v1/datasets/{name}/source/pull"
    assert people("olga", "POST", path.format(name="absent")).status_code == 404
    assert people("olga", "GET", "/v1/datasets").status_code == 200
    lines = application.state.services.metrics.exposition().decode().splitlines()
    named = [line for line in lines if path in line]
    assert named
    assert all(line.startswith("privypurse_requests_") for line in named)
    assert any(
        line.startswith("privypurse_request_seconds") and '"/v1/datasets"' in line for line in lines
    )


def _name(route: Route) -> str:
    return f"{' '.join(route.methods)} {route.path}"


def reached(start: Any) -> Iterator[Any]:
    """The functions of the service that a function names, and those that they name."""
    seen, todo = set(), [start]
    while todo:
        function = todo.pop()
        if function in seen or not function.__module__.startswith("app."):
            continue
        seen.add(function)
        yield function
        names = set(_names(function.__code__))
        values = [function.__globals__.get(name) for name in names]
        modules = [one for one in values if isinstance(one, ModuleType)]
        values += [getattr(module, name, None) for module in modules for name in names]
        todo += [one for one in values if isinstance(one, FunctionType)]


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)
