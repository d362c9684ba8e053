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

#: Modules that test queries over HTTP, through the fast lane and through its twin in FastAPI.
BOTH_WAYS = {"test_hostile", "test_queries"}
#: The same, but through the twin only among the slow tests: they are about kinds and the engine.
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
