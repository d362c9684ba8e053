"""How much longer the service takes to come back over a large ledger than over an empty one.

    python -m benchmarks.ledger_restart [--entries 1000000] [--rounds 7]
    scripts/with_postgres.sh python -m benchmarks.ledger_restart

The real service, from the start of its process until ``/readyz`` says yes, after it was killed:
over both ledgers in turn, which of them first by turns too. Before it opens its ledger the process
loads its code: two seconds of the processor, many by the clock of a busy machine, and the same for
both. So what counts is the rest, and of that the median over rounds of large minus empty. Expected:
less than one second; status 1 when it is more. The large ledger is verified before, so what is
restarted is a real one.
"""

from __future__ import annotations

import json
import os
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from sqlalchemy import create_engine, make_url, text

from app.demo.service import ServiceProcess
from benchmarks.accounts import hot_account
from benchmarks.filling import ACCOUNTS, fill
from storage.assurance.verification import verify
from storage.database.database import Database

MOST_SECONDS = 1.0
#: What the log says when the code is there and the ledger is opened next.
OPENING = "Waiting for application startup"


@dataclass(frozen=True)
class Start:
    """Seconds of one start: until it is ready, since its code was loaded, of the processor."""

    whole: float
    opening: float
    processor: float

    @classmethod
    def of(cls, starts: Sequence[Start], choose: Callable[[list[float]], float]) -> Start:
        """Of each part the one that is chosen from those of all starts."""
        parts = ([getattr(start, part.name) for start in starts] for part in fields(cls))
        return cls(*map(choose, parts))

    def __str__(self) -> str:
        return (
            f"ready after {self.whole:.2f} s, {self.opening:.2f} s after its code was loaded; "
            f"{self.processor:.2f} s of the processor"
        )


def large(url: str, data: Path, entries: int) -> None:
    """Fill the ledger of a service that was started once."""
    begun = time.perf_counter()
    database = Database.open(url, data)
    try:
        fill(database, hot_account(database), -(-entries // ACCOUNTS))
        filled, begun = time.perf_counter() - begun, time.perf_counter()
        found = verify(database)
    finally:
        database.close()
    if not found.valid or found.entries < entries:
        raise SystemExit(f"not a valid ledger: {found}")
    checked = time.perf_counter() - begun
    print(f"{found.entries:,} entries written in {filled:.0f} s, verified in {checked:.0f} s")


def restart(service: ServiceProcess) -> Start:
    """Start the process, wait until it is ready, and kill it."""
    written = service.log.stat().st_size if service.log.exists() else 0
    begun = time.time()
    service.start().wait_ready()
    ready = time.time()
    stat = Path(f"/proc/{service.pid}/stat").read_text("ascii").rpartition(")")[2].split()
    service.kill()
    lines = service.log.read_bytes()[written:].decode().splitlines()
    (loaded,) = (json.loads(line)["timestamp"] for line in lines if OPENING in line)
    processor = sum(map(int, stat[11:13])) / os.sysconf("SC_CLK_TCK")
    return Start(ready - begun, ready - datetime.fromisoformat(loaded).timestamp(), processor)


def databases(folder: Path) -> dict[str, str]:
    """An address for each of the two ledgers."""
    given = os.environ.get("DATABASE_URL", "")
    names = ("empty", "large")
    if not given.startswith("postgres"):
        return {name: f"sqlite:///{folder}/{name}/privypurse.db" for name in names}
    server = create_engine(given, isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        for name in names:
            connection.execute(text(f'CREATE DATABASE "{name}_{os.getpid()}"'))
    server.dispose()
    made = {name: make_url(given).set(database=f"{name}_{os.getpid()}") for name in names}
    return {name: url.render_as_string(hide_password=False) for name, url in made.items()}


def main() -> int:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    with TemporaryDirectory() as name:
        folder, services = Path(name), dict[str, ServiceProcess]()
        urls = databases(folder)
        for which, url in urls.items():
            services[which] = ServiceProcess(folder / which, DATABASE_URL=url)
            restart(services[which])
        large(urls["large"], folder / "large", options.entries)
        restart(services["large"])  # publishes its heads, which every later start compares with
        taken: dict[str, list[Start]] = {which: [] for which in services}
        for round in range(options.rounds):
            for which in sorted(services, reverse=bool(round % 2)):
                taken[which].append(restart(services[which]))
    for which, starts in taken.items():
        print(f"{which:6} median of {len(starts)}: {Start.of(starts, median)}")
        print(f"{'':6} fastest{'':4} : {Start.of(starts, min)}")
    pairs = zip(taken["large"], taken["empty"], strict=True)
    more = median(large.opening - empty.opening for large, empty in pairs)
    holds = more < MOST_SECONDS
    verdict = "holds" if holds else "FAILS"
    print(f"{more:+.2f} s (median), expected less than {MOST_SECONDS:g} s more  {verdict}")
    return int(not holds)


if __name__ == "__main__":
    sys.exit(main())
