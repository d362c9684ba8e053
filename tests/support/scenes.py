"""Crashes of processes before any step or at random, of connections, and of the server.

Each way counts its deaths and checks the books after them. ``test_kills`` dies a few hundred times
in this way, the bench ``ledger_crashes`` thousands of times.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.ledger.exactness import Prices
from tests.support.aftermath import check_aftermath
from tests.support.patience import until
from tests.support.victims import Job, Nursery, said
from tests.support.world import World

ROOM = 150
#: The fewest seconds before a process is killed, by database. Connecting to PostgreSQL takes
#: longer.
SHORTEST = {"sqlite": 0.01, "postgresql": 0.08}
#: A process that is killed before the SQL statement with this text leaves its query running.
WHILE_RUNNING = "SET state="


class Scene:
    """One dataset, one analyst with a budget of that many queries, and the victims' journal.

    ``in_rho``: the accounts count in ρ as well, and some of the queries have no finite ε.
    """

    def __init__(
        self, world: World, url: str, folder: Path, room: int = ROOM, in_rho: bool = False
    ) -> None:
        self.world, self.url, self.journal = world, url, folder / "journal"
        self.prices = Prices.of(room, 1, in_rho)
        self.dataset, self.analyst = world.ready(self.prices.binding, self.prices.ample)
        self.kind = world.database.engine.dialect.name

    def job(self, *keys: str, **how: Any) -> Job:
        charges = tuple(charge.amounts for charge in self.prices.charges)
        ids = self.dataset.id, self.analyst.id
        return Job(self.url, str(self.journal), *ids, keys, charges=charges, **how)

    def check(self) -> int:
        """Check the ledger against the journal; return the number of answers."""
        if self.kind == "postgresql":
            # The server may still execute what a killed client sent last.
            until(lambda: not self._working())
        return check_aftermath(self.world, self.journal)

    def _working(self) -> int:
        """The number of other sessions of the database that are inside a transaction."""
        with self.world.database.engine.connect() as connection:
            working = connection.exec_driver_sql(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                "AND backend_type = 'client backend' AND state <> 'idle' "
                "AND pid <> pg_backend_pid()"
            )
            return int(working.scalar_one())

    def answered(self) -> set[str]:
        """Returns the keys whose answer has left."""
        return {key for what, key, _ in said(self.journal) if what == "left"}


def kill_before_every_step(scene: Scene, nursery: Nursery, attempt: int) -> int:
    """Kill before every step of a first run, a takeover or a last attempt, then retry the keys."""
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
        # The next round checks the ledger of this round too, so a check here is not needed.
        assert scene.answered() >= {key for key in keys if not key.endswith("-")}
        if not killed:
            scene.check()
            return kills


def kill_at_random(scene: Scene, nursery: Nursery, random: Random, rounds: int) -> int:
    """Kill eight clients at random times; their old and new keys exceed the budget."""
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
    # After the kills, retries receive the stored answers and the whole budget can be used.
    assert not nursery.run(scene.job(*keys, clients=8, patient=True))
    assert scene.check() > 50
    return kills


def kill_backends(
    scene: Scene, nursery: Nursery, random: Random, requests: int, least: int = 0
) -> int:
    """End all sessions of the database repeatedly while its clients continue (PostgreSQL).

    A fast machine gets more requests, until ``least`` sessions have ended.
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
        while len(keys) < requests or len(killed) < least:
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
    """Crash the whole server while its clients work."""
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
