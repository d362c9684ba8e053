"""Crashes to order: victims that die before any step, at random, or by the other end's death.

Each way counts its deaths and checks the books after them. ``test_kills`` dies a few hundred times
in this way, ``benchmarks.ledger_crashes`` thousands of times.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from tests.support.aftermath import check_aftermath
from tests.support.victims import CHARGE, Job, Nursery, said
from tests.support.world import World, loss

ROOM = 150
#: The shortest life in seconds, by database: a victim on PostgreSQL takes longer to connect.
SHORTEST = {"sqlite": 0.01, "postgresql": 0.08}
#: Where a victim dies with its query running, as the next attempt finds it.
WHILE_RUNNING = "INSERT INTO settlement"


class Scene:
    """One dataset and one analyst with room for so many queries, and the victims' journal."""

    def __init__(self, world: World, url: str, folder: Path, room: int = ROOM) -> None:
        self.world, self.url, self.journal = world, url, folder / "journal"
        self.dataset, self.analyst = world.ready(CHARGE * room, loss(100))
        self.kind = world.database.engine.dialect.name

    def job(self, *keys: str, **how: Any) -> Job:
        return Job(self.url, str(self.journal), self.dataset.id, self.analyst.id, keys, **how)

    def check(self) -> int:
        """Nothing overspent, nothing forgotten, one answer a key; how many answers have left."""
        return check_aftermath(self.world, self.journal)

    def answered(self) -> set[str]:
        """The keys whose answer has left."""
        return {key for what, key, _ in said(self.journal) if what == "left"}


def kill_before_every_step(scene: Scene, nursery: Nursery, attempt: int) -> int:
    """Of a first run, a takeover or the last one; the same keys are asked again after each."""
    steps = kills = 0
    while True:
        steps += 1
        keys = [f"key {steps}", f"gone {steps}-", f"more {steps}"][: 3 if attempt == 1 else 1]
        for _ in range(attempt - 1):
            assert nursery.run(scene.job(keys[0], failpoint=WHILE_RUNNING))
            kills += 1
            scene.world.lapse()
        killed = nursery.run(scene.job(*keys, failpoint=str(steps)))
        kills += killed
        scene.check()
        scene.world.lapse()
        assert not nursery.run(scene.job(*keys, patient=True))
        assert scene.answered() >= {key for key in keys if not key.endswith("-")}
        scene.check()
        if not killed:
            return kills


def kill_at_random(scene: Scene, nursery: Nursery, random: Random, rounds: int) -> int:
    """Eight clients each time, of some keys of before and some new ones: too many for the room."""
    keys = [f"key {n}" + "-" * (n % 7 == 0) for n in range(400)]
    kills = 0
    for round in range(rounds):
        some = random.sample(keys[: min(40 + 3 * round, len(keys))], 24)
        seconds = SHORTEST[scene.kind] + random.uniform(0, 0.1)
        kills += nursery.run(scene.job(*some, clients=8, seconds=seconds))
        if round % 10 == 9:
            scene.check()
        scene.world.lapse()
    scene.check()
    # Whoever comes again gets the answer of before, and the budget was worth something.
    assert not nursery.run(scene.job(*keys, clients=8, patient=True))
    assert scene.check() > 50
    return kills


def kill_backends(
    scene: Scene, nursery: Nursery, random: Random, asked: int, least: int = 0
) -> int:
    """Every session of the database ends again and again while its clients go on (PostgreSQL).

    A machine that is quick is asked more, until ``least`` sessions have ended.
    """
    over, killed = threading.Event(), []

    def kill() -> None:
        while not over.wait(random.uniform(0.005, 0.03)):
            with scene.world.database.engine.connect() as connection:
                ended = connection.exec_driver_sql(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
                killed.extend(ended.all())

    keys: list[str] = []
    killer = threading.Thread(target=kill)
    killer.start()
    try:
        while len(keys) < asked or len(killed) < least:
            some = [f"key {len(keys) + n}" for n in range(20)]
            keys += some
            nursery.run(scene.job(*some, clients=4))
    finally:
        over.set()
        killer.join()
    _all_answered(scene, nursery, keys)
    return len(killed)


def stop_the_server(
    scene: Scene,
    nursery: Nursery,
    stop: Callable[[], None],
    start: Callable[[], object],
    times: int,
) -> int:
    """Every process of the server dies somewhere in the middle of what its clients do."""
    keys = [f"key {n}" for n in range(15 * times)]
    for time in range(times):
        some = scene.job(*keys[: 15 * (time + 1)], clients=6, seconds=0.6)
        asking = threading.Thread(target=nursery.run, args=(some,))
        asking.start()
        threading.Event().wait(0.25 + 0.01 * (time % 7))
        stop()
        asking.join()
        start()
        scene.check()
        scene.world.lapse()
    _all_answered(scene, nursery, keys)
    return times


def _all_answered(scene: Scene, nursery: Nursery, keys: list[str]) -> None:
    scene.check()
    scene.world.lapse()
    assert not nursery.run(scene.job(*keys, clients=4, patient=True))
    assert scene.check() == len(keys)
