"""Thousands of deaths: nothing overspent, nothing forgotten, one answer a key.

    python -m benchmarks.ledger_crashes [--database sqlite|postgresql] [--kills 2000]

Processes die by SIGKILL before any of their statements and commits, of a first run, a takeover
and a last attempt, and at random with eight clients in flight. On PostgreSQL its sessions and the
whole server (``pg_ctl stop -m immediate``, every tenth round) die as well; it runs a server of its
own. After each death all books are compared with each other and with every answer that had left,
and the same keys are asked again. It ends with status 1 at the first contradiction.
"""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from storage.assurance.verification import verify
from storage.database.database import Database
from tests.support import scenes
from tests.support.scenes import Scene
from tests.support.servers import Server, binaries
from tests.support.victims import Nursery
from tests.support.world import World

ROOM = 400
#: Deaths a round, by what dies.
AT_RANDOM, SESSIONS_ASKED, STOPS = 60, 120, 5


def crash(kind: str, kills: int, seed: int) -> Counter[str]:
    """Die at least so often; how often, by the way of dying."""
    random, deaths = Random(seed), Counter[str]()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        folder.chmod(0o711)  # the server may run as another user
        nursery = stack.enter_context(Nursery())
        server = stack.enter_context(_server(folder)) if kind == "postgresql" else None
        for round in count():
            for attempt in (1, 2, 3):
                with _scene(folder, server) as scene:
                    deaths["before a step"] += scenes.kill_before_every_step(
                        scene, nursery, attempt
                    )
            with _scene(folder, server) as scene:
                deaths["at random"] += scenes.kill_at_random(scene, nursery, random, AT_RANDOM)
            if server is not None:
                with _scene(folder, server) as scene:
                    deaths["session"] += scenes.kill_backends(
                        scene, nursery, random, SESSIONS_ASKED
                    )
            if server is not None and round % 10 == 0:
                with _scene(folder, server) as scene:
                    deaths["server"] += scenes.stop_the_server(
                        scene, nursery, server.stop, server.start, STOPS
                    )
            print(f"{deaths.total():5} deaths: {dict(deaths)}", flush=True)
            if deaths.total() >= kills:
                return deaths
    raise AssertionError("unreachable")


def _server(folder: Path) -> Server:
    bin = binaries()
    if bin is None:
        raise SystemExit("needs PostgreSQL: apt-get install postgresql")
    return Server(bin, folder / "cluster")


@contextmanager
def _scene(folder: Path, server: Server | None) -> Iterator[Scene]:
    """A ledger of its own, which must verify in the end."""
    number = len(list(folder.glob("scene-*")))
    own = folder / f"scene-{number}"
    own.mkdir()
    url = f"sqlite:///{own}/ledger.db" if server is None else server.new_database(f"s{number}")
    database = Database.open(url, own)
    try:
        yield Scene(World(database, own), url, own, ROOM)
        found = verify(database)
        assert found.valid, found.first_bad
    finally:
        database.close()


def main() -> int:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--kills", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    begun = time.perf_counter()
    try:
        deaths = crash(options.database, options.kills, options.seed)
    except AssertionError as contradiction:
        print(f"CONTRADICTION: {contradiction!r}")
        raise
    print(
        f"{options.database}: {deaths.total()} deaths, {dict(deaths)}: nothing overspent, nothing "
        f"forgotten, one answer a key, every chain verified; {time.perf_counter() - begun:.0f} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
