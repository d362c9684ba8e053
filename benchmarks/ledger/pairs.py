"""How many queries a second the ledger charges and settles, beside the bare drivers.

A *pair* is the reserve and the settle of one query: one hot account and two caps. On SQLite the
rivals run the very same statements in one thread of ``sqlite3``: in groups as large as ours, and
one commit a reserve and a settle. On PostgreSQL the rival calls the same function, one statement
an autocommit, from as many connections as there are clients; there also on 1,000 accounts.
"""

from __future__ import annotations

import os
import time
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from statistics import median

from app.demo.service import ROOT
from benchmarks.bench import BEFORE, Bar, Bench, Setting
from benchmarks.ledger.databases import databases, folder
from benchmarks.ledger.driver import Driver
from benchmarks.ledger.rivals import PostgresRival, SqliteRival
from benchmarks.result import Result
from benchmarks.rounds import Rounds, Way, number

CLIENTS, MANY = 32, 256
#: Below this many seconds a disk is as fast as memory, and waiting together gains nothing.
SLOW_DISK = 0.0003
#: What is measured of the ledger: accounts and clients, by kind of database.
MEASURED = {
    "sqlite": {"hot, 32 clients": ("hot", CLIENTS), "hot, 256 clients": ("hot", MANY)},
    "postgresql": {"hot, 32 clients": ("hot", CLIENTS), "many, 32 clients": ("many", CLIENTS)},
}
#: Of ours and a rival, the least ratio.
RATIOS = {
    "sqlite": (
        ("hot, 32 clients", "raw, groups of 32", 0.5),
        ("hot, 32 clients", "raw, one by one", 3.0),
        ("hot, 256 clients", "raw, one by one", 5.0),
    ),
    "postgresql": (
        ("hot, 32 clients", "autocommit, hot", 2.0),
        ("many, 32 clients", "autocommit, many", 0.6),
    ),
}
RIVALS = {
    "sqlite": "sqlite3, the same statements in one thread",
    "postgresql": "psycopg, one statement an autocommit",
}
#: The least share of the pairs a second of the tree before.
KEPT = {"sqlite": 0.95, "postgresql": 0.8}


def run(setting: Setting, kind: str) -> Result:
    result = Result()
    seconds, rounds = (0.4, 2) if setting.quick else (3.0, 5)
    with ExitStack() as stack:
        within = stack.enter_context(folder())
        disk = fsync_seconds(within)
        new_database = stack.enter_context(databases(kind, within))
        ways: dict[str, Way] = {}
        if kind == "sqlite":
            raw = stack.enter_context(closing(SqliteRival(within / "raw.db", within)))
            ways["raw, groups of 32"] = partial(raw.rate, CLIENTS, seconds)
            ways["raw, one by one"] = partial(raw.rate, 1, seconds)
        else:
            rival = stack.enter_context(closing(PostgresRival(new_database("raw"), CLIENTS)))
            for accounts in ("hot", "many"):
                ways[f"autocommit, {accounts}"] = partial(rival.rate, accounts, seconds)
        drivers = {}
        trees = {"ledger": ROOT} | ({"before": setting.before} if setting.before else {})
        for name, root in trees.items():
            own = within / name
            own.mkdir()
            driver = stack.enter_context(Driver(new_database(name), own, root))
            drivers[name] = driver
            for what, (accounts, clients) in MEASURED[kind].items():
                ways[f"{name}, {what}"] = partial(driver.rate, accounts, clients, seconds)
        found = Rounds.of("pairs a second", ways, rounds).report(result, "pairs")
    result.table(
        "p99 in ms, and of one fsync", ["ledger", *MEASURED[kind], "fsync"],
        [[name, *(number(driver.p99_ms[what]) for what in MEASURED[kind]), number(disk * 1e3)]
         for name, driver in drivers.items()],
    )  # fmt: skip
    for ours, rival, _ in RATIOS[kind]:
        ratio = f"ledger, {ours} / {rival}"
        result.measure(ratio, found.ratio(f"ledger, {ours}", rival), "×")
        if rival == "raw, one by one" and disk < SLOW_DISK:
            del result.measured[ratio]
            result.unjudged[ratio] = "the disk is as fast as memory: nothing to wait for"
    for what in MEASURED[kind] if setting.before else ():
        kept = found.ratio(f"ledger, {what}", f"before, {what}")
        result.measure(f"ledger / before: {what}", kept, "×")
    return result


def fsync_seconds(within: Path) -> float:
    """The median time one fsync of 4 KB takes where the database will lie."""
    times = []
    with (within / "probe").open("wb") as file:
        for _ in range(50):
            file.write(bytes(4096))
            file.flush()
            begun = time.perf_counter()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - begun)
    return median(times)


BENCHES = tuple(
    Bench(
        f"ledger_pairs.{kind}",
        f"How many queries a second does the ledger charge and settle on {kind}?",
        partial(run, kind=kind),
        90.0,
        (RIVALS[kind], BEFORE),
        (
            *(Bar(f"ledger, {ours} / {rival}", least=least) for ours, rival, least in RATIOS[kind]),
            Bar("ledger / before: *", least=KEPT[kind], before=True),
        ),
    )
    for kind in MEASURED
)
