"""No data of a request reaches telemetry that is configured around the service."""

from __future__ import annotations

from typing import NoReturn

import pytest
from fastapi.testclient import TestClient
from opentelemetry import _logs, metrics, trace


class Collected(AssertionError):
    """Raised when a span would be sent."""


class Provider:
    """Fails every request for a tracer or meter."""

    def __getattr__(self, name: str) -> NoReturn:
        raise Collected(name)


def test_no_provider_of_the_environment_is_asked(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in (
        (trace, "get_tracer_provider"),
        (metrics, "get_meter_provider"),
        (_logs, "get_logger_provider"),
    ):
        monkeypatch.setattr(module, name, Provider)
    assert client.get("/readyz").status_code == 200
    assert client.get("/v1/datasets").status_code == 401
