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
)

__all__ = ["application", "begun", "client", "fast_lane", "people", "service", "settings"]

#: Modules that test queries over HTTP, through the fast lane and through its twin in FastAPI.
QUERIES = {
    "test_answering",
    "test_conversion_of_kinds",
    "test_distances",
    "test_hostile",
    "test_light",
    "test_load",
    "test_queries",
    "test_selection_kinds",
    "test_statistics",
    "test_trees",
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    module = metafunc.module.__name__.rpartition(".")[2]
    if module in QUERIES and "fast_lane" in metafunc.fixturenames:
        metafunc.parametrize("fast_lane", [True, False], ids=["lane", "route"], indirect=True)
