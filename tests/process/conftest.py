"""The real service in processes of its own, over folders that end with the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.demo.service import ServiceProcess

#: No waiting for the release instant: what these tests look at does not depend on it.
QUICK = {"PURSE_RELEASE_INTERVAL": "0"}


@pytest.fixture
def service(tmp_path: Path) -> Iterator[ServiceProcess]:
    """A ready service over an empty folder."""
    with ServiceProcess(tmp_path / "data", **QUICK) as running:
        yield running


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[], ServiceProcess]]:
    """Starts processes over one and the same folder, without waiting for them."""
    started: list[ServiceProcess] = []

    def start_one() -> ServiceProcess:
        started.append(ServiceProcess(tmp_path / "data", **QUICK).start())
        return started[-1]

    yield start_one
    for process in started:
        process.kill()
