"""The fixtures of a store: its server, one ledger, and two replicas that share both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from storage.database.database import Database
from tests.support.world import World


@pytest.fixture(scope="session")
def server() -> Iterator[Any]:
    # Imported here, because it needs the optional libraries of the object store. Without them, the
    # test files skip themselves, but this file must load.
    from tests.support.stores import store_process

    with store_process() as process:
        yield process


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    database = Database.open(f"sqlite:///{tmp_path / 'ledger.db'}", tmp_path)
    yield World(database, tmp_path)
    database.close()


@pytest.fixture
def replicas(world: World, server: Any, tmp_path: Path) -> list[Any]:
    from tests.support.store_replicas import Replica

    address = server.address()
    return [Replica(world, server, tmp_path / name, address) for name in ("one", "two")]
