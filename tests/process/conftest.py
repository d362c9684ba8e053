"""The real service in its own processes, over folders that are deleted after the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.demo.service import ServiceProcess
from tests.process.session import Session

#: Settings of the services under test. Nothing waits for a public interval, because no test here
#: depends on one. An upload replies when its records can be queried, however busy the machine is.
QUICK = {
    "PURSE_RELEASE_INTERVAL": "0",
    "PURSE_OPENING_INTERVAL": "0",
    "PURSE_UPLOAD_WAIT": "300",
}


@pytest.fixture
def service(tmp_path: Path) -> Iterator[ServiceProcess]:
    """A ready service over an empty folder."""
    with ServiceProcess(tmp_path / "data", **QUICK) as running:
        yield running


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """One service for all modules with real graphs and tables, as a start takes three seconds.

    They register their datasets under different names.
    """
    data = tmp_path_factory.mktemp("real") / "data"
    with ServiceProcess(data, **QUICK) as running:
        yield Session.open(running)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[], ServiceProcess]]:
    """Starts processes over one shared folder and returns before they are ready."""
    started: list[ServiceProcess] = []

    def start_one() -> ServiceProcess:
        started.append(ServiceProcess(tmp_path / "data", **QUICK).start())
        return started[-1]

    yield start_one
    for process in started:
        process.kill()
