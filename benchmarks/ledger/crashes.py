"""Thousands of deaths: nothing overspent, nothing forgotten, one answer a key.

Processes die by SIGKILL before any of their statements and commits, of a first run, a takeover
and a last attempt, and at random with eight clients in flight. On PostgreSQL its sessions and the
whole server (``pg_ctl stop -m immediate``, every tenth round) die as well. After each death all
books are compared with each other and with every answer that had left, and the same keys are asked
again. In every other ledger charges also fit by ρ. It ends at the first contradiction.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from random import Random

from benchmarks.bench import Bar, Setting, for_each
from benchmarks.ledger.databases import KINDS, folder, postgresql
from benchmarks.result import Result
from storage.assurance.verification import verify
from storage.database.database import Database
from tests.support.scenes import (
    Scene,
    kill_at_random,
    kill_backends,
    kill_before_every_step,
    stop_the_server,
)
from tests.support.servers import Server
from tests.support.victims import Nursery
from tests.support.world import World

ROOM, KILLS = 400, 2000
#: Per round: clients that are killed at random moments, requests while PostgreSQL sessions are
#: killed, and crashes of the PostgreSQL server.
AT_RANDOM, SESSIONS_ASKED, STOPS = 60, 120, 5


def crash(kind: str, kills: int, seed: int) -> Counter[str]:
    """Die at least so often; how often, by the way of dying."""
    random, deaths = Random(seed), Counter[str]()
    with ExitStack() as stack:
        within = stack.enter_context(folder())
        nursery = stack.enter_context(Nursery())
        server = stack.enter_context(postgresql(within)) if kind == "postgresql" else None
        for number in count():
            for name, kill in ways(nursery, server, random, number):
                with _scene(within, server) as scene:
                    deaths[name] += kill(scene)
                if deaths.total() >= kills:
                    return deaths
    raise AssertionError("unreachable")


def ways(
    nursery: Nursery, server: Server | None, random: Random, number: int
) -> Iterator[tuple[str, Callable[[Scene], int]]]:
    """How to die in one round: each is a function that kills in a scene and says how often."""
    for attempt in (1, 2, 3):
        yield "before a step", partial(kill_before_every_step, nursery=nursery, attempt=attempt)
    yield "at random", lambda s: kill_at_random(s, nursery, random, AT_RANDOM)
    if server is not None:
        yield "session", lambda s: kill_backends(s, nursery, random, SESSIONS_ASKED)
        if number % 10 == 0:
            stop, start = server.stop, server.start
            yield "server", lambda s: stop_the_server(s, nursery, stop, start, STOPS)


@contextmanager
def _scene(within: Path, server: Server | None) -> Iterator[Scene]:
    """A ledger of its own, which must verify in the end."""
    number = len(list(within.glob("scene-*")))
    own = within / f"scene-{number}"
    own.mkdir()
    url = f"sqlite:///{own}/ledger.db" if server is None else server.new_database(f"s{number}")
    database = Database.open(url, own)
    try:
        yield Scene(World(database, own), url, own, ROOM, in_rho=number % 2 == 1)
        outcome = verify(database)
        assert outcome.valid, outcome.first_bad
    finally:
        database.close()


def run(result: Result, setting: Setting, name: str) -> None:
    deaths = crash(name, setting.size(KILLS, 20), setting.seed)
    result.table("deaths without a contradiction", list(deaths), [list(deaths.values())])
    if not setting.quick:
        result.measure("deaths without a contradiction", deaths.total())


BENCHES = for_each(
    "ledger_crashes", "Is anything overspent or forgotten when processes die on {}?", run, "",
    dict.fromkeys(KINDS, 1800.0), bars=(Bar("deaths without a contradiction", least=KILLS),),
)  # fmt: skip
