"""A large ledger: how fast it is verified, and how much longer the service takes to return.

*ledger_restart* starts the real service until ``/readyz`` says yes, after it was killed: over an
empty ledger and a large one in turn. Before it opens its ledger the process loads its code: two
seconds of the processor, many by the clock of a busy machine, and the same for both. So what counts
is the rest, and of that the median over rounds of large minus empty.
"""

import json
import time
from datetime import datetime
from functools import partial
from hashlib import sha256
from statistics import median

from sqlalchemy import select

from app.demo.service import ServiceProcess
from benchmarks.bench import Bar, Bench, Setting, for_each
from benchmarks.ledger.accounts import hot_account, opened
from benchmarks.ledger.clients import fill
from benchmarks.ledger.databases import KINDS, databases, folder
from benchmarks.result import Result
from benchmarks.rounds import Rounds, processor
from storage.assurance.verification import verify, verify_new
from storage.database.database import Database
from storage.database.snapshot import snapshot, streamed
from storage.database.tables import (
    budget_account,
    entry,
    journal,
    journal_stream,
    query,
    settlement,
)
from storage.ledger.ledger import Ledger

#: Each query is charged to this many accounts, those of ``hot_account``.
ACCOUNTS = 3
#: The number of queries that are added to a ledger between two verifications.
NEW = 3_000
#: The message in the log when the code is loaded and the ledger is opened next. Timing starts
#: there.
OPENING = "Waiting for application startup"


def filled(database: Database, ledger: Ledger, queries: int) -> int:
    """Settle so many queries, verify all that is stored, and return the number of entries."""
    fill(ledger, hot_account(database), queries)
    outcome = verify(database)
    if not outcome.valid:
        raise AssertionError(f"not a valid ledger: {outcome}")
    return outcome.extent.entries


def verification(result: Result, setting: Setting) -> None:
    with folder() as within, opened(f"sqlite:///{within}/l.db", within) as (database, ledger):
        entries = filled(database, ledger, setting.size(20_000, 3_000))
        ways = {
            "verify": processor(lambda: verify(database)),
            "read and hash": processor(lambda: read_and_hash(database)),
        }
        rounds = Rounds.of("seconds", ways, 5)
    rounds.report(result, f"{entries:,} entries, seconds of a processor")
    verified, read = (min(rounds.values[way]) for way in ways)
    result.measure("entries verified", entries / verified, "per second")
    result.measure("verify ÷ read and hash", verified / read, "")


def incremental(result: Result, setting: Setting) -> None:
    """What is new of a short ledger, and then of the same ledger when it is long."""
    ways: dict[str, float] = {}
    with folder() as within, opened(f"sqlite:///{within}/l.db", within) as (database, ledger):
        pair = hot_account(database)
        for name, queries in {"short": 1, "long": setting.size(60_000, 6_000)}.items():
            fill(ledger, pair, queries)
            before = verify(database)
            assert before.valid, before
            fill(ledger, pair, NEW)
            verified = {one.account: one for one in before.verified}
            since = partial(verify_new, database, {}, verified, {}, before.streams)
            new = since().extent.entries - before.extent.entries
            seconds = min(processor(since)() for _ in range(5))
            ways[name] = seconds / new
            result.measure(f"{name}: entries", float(before.extent.entries), "")
            result.measure(f"{name}: new entries verified", 1 / ways[name], "per second")
    result.measure("seconds per new entry: long ÷ short", ways["long"] / ways["short"], "")


def read_and_hash(database: Database) -> None:
    """Read the same rows with the driver, and take one digest of each: the least to be done."""
    with snapshot(database) as connection:
        for table in (budget_account, entry, query, settlement, journal, journal_stream):
            for row in streamed(connection, select(table)):
                sha256(b"".join(one if type(one) is bytes else str(one).encode() for one in row))


def restarts(result: Result, setting: Setting, name: str) -> None:
    """The large ledger is verified before, so what is restarted is a real one."""
    services: dict[str, ServiceProcess] = {}
    with folder() as within, databases(name, within) as new_database:
        urls = {which: new_database(which) for which in ("empty", "large")}
        for which, url in urls.items():
            (within / which).mkdir()
            services[which] = ServiceProcess(within / which, DATABASE_URL=url)
            restart(services[which])
        with opened(urls["large"], within / "large") as (database, ledger):
            entries = filled(database, ledger, setting.size(1_000_000, 3_000) // ACCOUNTS)
        # The warm-up start publishes the heads, the last hash of every account's chain. Every later
        # start compares the ledger with them.
        ways = {which: partial(restart, service) for which, service in services.items()}
        rounds = Rounds.of("seconds after the code was loaded", ways, setting.times(7))
    rounds.report(result, f"{entries:,} entries")
    pairs = zip(rounds.values["large"], rounds.values["empty"], strict=True)
    result.measure("large − empty", median(large - empty for large, empty in pairs), "s")


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
    Bench("verification", "How fast is a ledger verified: every chain, charge and ending?",
          verification, 30.0, rivals=("reading the same rows with the driver and hashing them",),
          bars=(Bar("verify ÷ read and hash", most=4.0),)),
    Bench("verification_of_new", "Does verifying new entries take longer in a long ledger?",
          incremental, 30.0, rivals=("as many new entries in a short ledger",),
          bars=(Bar("seconds per new entry: long ÷ short", most=1.5),)),
    *for_each(
        "ledger_restart", "How much longer does a restart take over a large ledger on {}?",
        restarts, "", dict.fromkeys(KINDS, 400.0),
        rivals=("the same service over an empty ledger",),
        bars=(Bar("large − empty", most=1.0),),
    ),
)  # fmt: skip
