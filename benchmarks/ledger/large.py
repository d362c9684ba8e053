"""A large ledger: how fast all of it is verified, and how much longer the service takes to return.

*ledger_restart* starts the real service until ``/readyz`` says yes, after it was killed: over an
empty ledger and a large one in turn. Before it opens its ledger the process loads its code: two
seconds of the processor, many by the clock of a busy machine, and the same for both. So what counts
is the rest, and of that the median over rounds of large minus empty.
"""

from __future__ import annotations

import json
import time
from datetime import datetime
from functools import partial
from statistics import median

from app.demo.service import ServiceProcess
from benchmarks.bench import Bar, Bench, Setting
from benchmarks.ledger.accounts import hot_account, opened
from benchmarks.ledger.clients import fill
from benchmarks.ledger.databases import KINDS, databases, folder
from benchmarks.result import Result
from benchmarks.rounds import Rounds, processor
from storage.assurance.verification import verify

#: Every account of ``hot_account`` is charged for each query.
ACCOUNTS = 3
#: What the log says when the code is there and the ledger is opened next.
OPENING = "Waiting for application startup"


def verification(setting: Setting) -> Result:
    result = Result()
    with folder() as within, opened(f"sqlite:///{within}/l.db", within) as (database, ledger):
        fill(ledger, hot_account(database), setting.size(20_000, 3_000))
        found = verify(database)
        rounds = Rounds.of("seconds", {"verify": processor(lambda: verify(database))}, 5)
    if not found.valid:
        raise AssertionError(f"not a valid ledger: {found}")
    rounds.report(result, f"{found.entries:,} entries, seconds of a processor")
    result.measure("entries verified", found.entries / min(rounds.values["verify"]), "a second")
    return result


def restarts(setting: Setting, kind: str) -> Result:
    """The large ledger is verified before, so what is restarted is a real one."""
    result = Result()
    services: dict[str, ServiceProcess] = {}
    with folder() as within, databases(kind, within) as new_database:
        urls = {which: new_database(which) for which in ("empty", "large")}
        for which, url in urls.items():
            (within / which).mkdir()
            services[which] = ServiceProcess(within / which, DATABASE_URL=url)
            restart(services[which])
        with opened(urls["large"], within / "large") as (database, ledger):
            fill(ledger, hot_account(database), setting.size(1_000_000, 3_000) // ACCOUNTS)
            found = verify(database)
        if not found.valid:
            raise AssertionError(f"not a valid ledger: {found}")
        # The first start publishes heads, which every later one compares with.
        ways = {name: partial(restart, service) for name, service in services.items()}
        rounds = Rounds.of("seconds after the code was loaded", ways, setting.times(7))
    rounds.report(result, f"{found.entries:,} entries")
    pairs = zip(rounds.values["large"], rounds.values["empty"], strict=True)
    result.measure("large − empty", median(large - empty for large, empty in pairs), "s")
    return result


def restart(service: ServiceProcess) -> float:
    """Start the process, wait until it is ready, and kill it; the seconds since its code was
    loaded."""
    written = service.log.stat().st_size if service.log.exists() else 0
    service.start().wait_ready()
    ready = time.time()
    service.kill()
    lines = service.log.read_bytes()[written:].decode().splitlines()
    (loaded,) = (json.loads(line)["timestamp"] for line in lines if OPENING in line)
    return ready - datetime.fromisoformat(loaded).timestamp()


BENCHES = (
    Bench(
        "verification",
        "How fast is a ledger verified: every chain, charge and ending?",
        verification,
        30.0,
        (),
        (Bar("entries verified", least=100_000),),
    ),
    *(
        Bench(
            f"ledger_restart.{kind}",
            f"How much longer does a restart take over a large ledger on {kind}?",
            partial(restarts, kind=kind),
            400.0,
            ("the same service over an empty ledger",),
            (Bar("large − empty", most=1.0),),
        )
        for kind in KINDS
    ),
)
