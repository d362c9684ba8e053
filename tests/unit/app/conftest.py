"""The fixtures of a whole service in this process, and of its users."""

import pytest

from tests.support.service import (
    application,
    begun,
    client,
    fast_lane,
    people,
    service,
    settings,
    shared,
)

__all__ = [
    "application",
    "begun",
    "client",
    "fast_lane",
    "people",
    "service",
    "settings",
    "shared",
]

#: Test modules whose queries run twice: through the fast lane, which skips FastAPI, and through the
#: same route in FastAPI.
BOTH_WAYS = {"test_hostile", "test_queries"}
#: Test modules that run through FastAPI in slow runs only, because they test kinds of query and the
#: engine, and not HTTP.
SLOW_TWINS = {
    "test_answering",
    "test_conversion_of_kinds",
    "test_distances",
    "test_instants",
    "test_light",
    "test_load",
    "test_selection_kinds",
    "test_statistics",
    "test_trees",
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    module = metafunc.module.__name__.rpartition(".")[2]
    if module in BOTH_WAYS | SLOW_TWINS and "fast_lane" in metafunc.fixturenames:
        marks = pytest.mark.slow if module in SLOW_TWINS else pytest.mark.long
        route = pytest.param(False, id="route", marks=marks)
        lanes = [pytest.param(True, id="lane"), route]
        metafunc.parametrize("fast_lane", lanes, indirect=True, scope="module")
