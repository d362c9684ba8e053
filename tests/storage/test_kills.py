"""Killed between any two statements and at random: nothing overspent, forgotten or answered twice.

At least 200 kills in all on both databases; ``benchmarks.ledger_crashes`` makes 2,000.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from storage.database import Database
from tests.storage.aftermath import check_aftermath
from tests.storage.victims import CHARGE, Job, Nursery, said
from tests.storage.world import World, loss

#: Kills, and the shortest life, by database: a victim on PostgreSQL takes longer to connect.
RANDOM_KILLS = {"sqlite": 120, "postgresql": 40}
SHORTEST = {"sqlite": 0.01, "postgresql": 0.08}
ROOM = 150


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as nursery:
        yield nursery


class Scene:
    """One dataset and one analyst with room for so many queries, and the victims' journal."""

    def __init__(self, world: World, url: str, folder: Path, room: int = ROOM) -> None:
        self.world, self.url, self.journal = world, url, folder / "journal"
        self.dataset, self.analyst = world.ready(CHARGE * room, loss(100))

    def job(self, *keys: str, **how: Any) -> Job:
        return Job(self.url, str(self.journal), self.dataset.id, self.analyst.id, keys, **how)

    def check(self) -> int:
        return check_aftermath(self.world, self.journal)


@pytest.fixture
def scene(world: World, url: str, tmp_path: Path) -> Scene:
    return Scene(world, url, tmp_path)


@pytest.mark.parametrize("attempt", [1, 2, 3])
def test_a_kill_before_any_step(scene: Scene, nursery: Nursery, attempt: int) -> None:
    """Of a first run, of a takeover, and of the last one; the same keys are asked again after."""
    steps = 0
    while True:
        steps += 1
        keys = [f"key {steps}", f"gone {steps}-", f"more {steps}"][: 3 if attempt == 1 else 1]
        for _ in range(attempt - 1):
            # Dies with its query running, as the next attempt finds it.
            assert nursery.run(scene.job(keys[0], failpoint="INSERT INTO settlement"))
            scene.world.lapse()
        killed = nursery.run(scene.job(*keys, failpoint=str(steps)))
        scene.check()
        scene.world.lapse()
        assert not nursery.run(scene.job(*keys))
        answered = {key for what, key, _ in said(scene.journal) if what == "left"}
        assert answered >= {key for key in keys if not key.endswith("-")}
        scene.check()
        if not killed:
            break
    assert steps > 5, "there were steps to die between"


def test_kills_at_random(scene: Scene, nursery: Nursery, kind: str) -> None:
    random = Random(2024)
    keys = [f"key {n}" + "-" * (n % 7 == 0) for n in range(400)]
    kills = 0
    for round in range(RANDOM_KILLS[kind]):
        # Some keys of before, some new ones: more than there is room for in the end.
        some = random.sample(keys[: 40 + 3 * round], 24)
        seconds = SHORTEST[kind] + random.uniform(0, 0.1)
        kills += nursery.run(scene.job(*some, clients=8, seconds=seconds))
        if round % 10 == 9:
            scene.check()
        scene.world.lapse()
    assert kills == RANDOM_KILLS[kind]
    assert scene.check() > 10
    # Whoever comes again gets the answer of before, and the budget was worth something.
    assert not nursery.run(scene.job(*keys, clients=8))
    assert scene.check() > 50


class TestPostgresql:
    """The other end of the connection dies."""

    pytestmark = pytest.mark.postgres

    @pytest.fixture
    def kind(self) -> str:
        return "postgresql"

    def test_backends_are_killed(self, scene: Scene, nursery: Nursery, database: Database) -> None:
        over = threading.Event()
        killed = []

        def kill() -> None:
            random = Random(7)
            while not over.wait(random.uniform(0.005, 0.03)):
                with database.engine.connect() as connection:
                    killed.extend(
                        connection.exec_driver_sql(
                            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
                        ).all()
                    )

        keys = [f"key {n}" for n in range(120)]
        killer = threading.Thread(target=kill)
        killer.start()
        try:
            for start in range(0, 120, 20):
                nursery.run(scene.job(*keys[start : start + 20], clients=4))
        finally:
            over.set()
            killer.join()
        assert len(killed) > 20
        scene.check()
        scene.world.lapse()
        assert not nursery.run(scene.job(*keys, clients=4))
        assert scene.check() == 120
