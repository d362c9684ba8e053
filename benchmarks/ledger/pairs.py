"""How many queries per second the ledger charges and settles, beside its bare transactions.

A *pair* is the reserve and the settle of one query: one hot account and two caps. The rival runs
the very same transactions with nothing around them: on SQLite in one thread, in groups as large as
ours, and with one commit per reserve and per settle; on PostgreSQL one query per transaction from
as many connections as its pool has, also on 1,000 accounts.
"""

import os
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median

from app.demo.service import ROOT
from benchmarks.bench import BEFORE, Bar, Bench, Setting
from benchmarks.ledger.databases import databases, folder
from benchmarks.ledger.driver import Driver
from benchmarks.ledger.rivals import Rival
from benchmarks.result import Result
from benchmarks.rounds import Rounds, Way

CLIENTS, MANY = 32, 256
#: If an fsync takes fewer seconds than this, the disk is as fast as memory and a common commit of
#: many queries gains nothing.
SLOW_DISK = 0.0003
#: By kind of database, what is measured of the ledger: the accounts (``hot`` for the same ones in
#: all queries, ``many`` for different ones) and the number of clients.
MEASURED = {
    "sqlite": {"hot, 32 clients": ("hot", CLIENTS), "hot, 256 clients": ("hot", MANY)},
    "postgresql": {"hot, 32 clients": ("hot", CLIENTS), "many, 32 clients": ("many", CLIENTS)},
}
#: The rival, which runs the bare transactions, by kind of database: its accounts, its queries per
#: commit and its threads.
BARE = {
    "sqlite": {"bare, groups of 32": ("hot", CLIENTS, 1), "bare, one by one": ("hot", 1, 1)},
    "postgresql": {"bare, hot": ("hot", 1, 16), "bare, many": ("many", 1, 16)},
}
#: A measurement of the ledger, one of the rival, and the least ratio of their rates.
RATIOS = {
    "sqlite": (
        ("hot, 32 clients", "bare, groups of 32", 0.5),
        ("hot, 32 clients", "bare, one by one", 3.0),
        ("hot, 256 clients", "bare, one by one", 5.0),
    ),
    "postgresql": (
        ("hot, 32 clients", "bare, hot", 2.0),
        ("many, 32 clients", "bare, many", 0.6),
    ),
}
#: This checkout must reach at least this share of the rate of the one that ``--before`` names.
LEAST_SHARE = {"sqlite": 0.95, "postgresql": 0.8}


def run(result: Result, setting: Setting, kind: str) -> None:
    # There are many short rounds because the speed of a disk changes within seconds. A ratio
    # compares two rates of one round.
    seconds, rounds = (0.4, 2) if setting.quick else (1.0, 17)
    with ExitStack() as stack:
        within = stack.enter_context(folder())
        disk = fsync_seconds(within)
        new_database = stack.enter_context(databases(kind, within))
        rival = stack.enter_context(Rival.opened(new_database("bare"), within))
        ways: dict[str, Way] = {
            name: partial(rival.rate, *how, seconds) for name, how in BARE[kind].items()
        }
        drivers = {}
        trees = {"ledger": ROOT} | ({"before": setting.before} if setting.before else {})
        for name, root in trees.items():
            own = within / name
            own.mkdir()
            driver = stack.enter_context(Driver.started(new_database(name), own, root))
            drivers[name] = driver
            for what, (accounts, clients) in MEASURED[kind].items():
                ways[f"{name}, {what}"] = partial(driver.rate, accounts, clients, seconds)
        rates = Rounds.of("pairs per second", ways, rounds).report(result, "pairs")
    result.table(
        "p99 in ms, and of one fsync", ["ledger", *MEASURED[kind], "fsync"],
        [[name, *(driver.p99_ms[what] for what in MEASURED[kind]), disk * 1e3]
         for name, driver in drivers.items()],
    )  # fmt: skip
    for ours, theirs, _ in RATIOS[kind]:
        ratio = f"ledger, {ours} / {theirs}"
        if theirs == "bare, one by one" and disk < SLOW_DISK:
            result.unjudged[ratio] = "the disk is as fast as memory: nothing to wait for"
        else:
            result.measure(ratio, rates.ratio(f"ledger, {ours}", theirs), "×")
    for what in MEASURED[kind] if setting.before else ():
        ratio = f"ledger / before: {what}"
        result.measure(ratio, rates.ratio(f"ledger, {what}", f"before, {what}"), "×")


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
        f"How many queries per second does the ledger charge and settle on {kind}?",
        partial(run, kind=kind),
        90.0,
        ("the same transactions with nothing around them", BEFORE),
        (
            *(Bar(f"ledger, {ours} / {rival}", least=least) for ours, rival, least in RATIOS[kind]),
            Bar("ledger / before: *", least=LEAST_SHARE[kind], before=True),
        ),
    )
    for kind in MEASURED
)
