"""How much longer the service takes to come back over a large ledger than over an empty one.

    python -m benchmarks.ledger_restart [--entries 1000000] [--rounds 5]
    scripts/with_postgres.sh python -m benchmarks.ledger_restart

The real service, from the start of its process until ``/readyz`` says yes, after it was killed:
over both ledgers in turn. The fastest start of each counts, as other work only adds to it; the
processor time that it took is printed too. Expected: less than one second more; status 1 when it
is more. The large ledger is verified before, so what is restarted is a real one.
"""

from __future__ import annotations

import os
import sys
import time
from argparse import ArgumentParser
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy import create_engine, make_url, text

from app.demo.service import ServiceProcess
from benchmarks.accounts import hot_account
from benchmarks.filling import ACCOUNTS, fill
from storage.database import Database
from storage.verification import verify

MOST_SECONDS = 1.0


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


def restart(service: ServiceProcess) -> tuple[float, float]:
    """Seconds until the process is ready, by the clock and of the processor; then it is killed."""
    begun = time.perf_counter()
    service.start().wait_ready()
    seconds = time.perf_counter() - begun
    fields = Path(f"/proc/{service.pid}/stat").read_text("ascii").rpartition(")")[2].split()
    service.kill()
    return seconds, sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


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
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with TemporaryDirectory() as name:
        folder, services = Path(name), dict[str, ServiceProcess]()
        urls = databases(folder)
        for which, url in urls.items():
            services[which] = ServiceProcess(folder / which, DATABASE_URL=url)
            restart(services[which])
        large(urls["large"], folder / "large", options.entries)
        restart(services["large"])  # publishes its heads, which every later start compares with
        taken: dict[str, list[tuple[float, float]]] = {which: [] for which in services}
        for _ in range(options.rounds):
            for which, service in services.items():
                taken[which].append(restart(service))
    for which, starts in taken.items():
        clock, processor = (min(times) for times in zip(*starts, strict=True))
        print(f"{which:6} ready after {clock:.2f} s, {processor:.2f} s of the processor")
    more = min(taken["large"])[0] - min(taken["empty"])[0]
    holds = more < MOST_SECONDS
    verdict = "holds" if holds else "FAILS"
    print(f"{more:+.2f} s, expected less than {MOST_SECONDS:g} s more  {verdict}")
    return int(not holds)


if __name__ == "__main__":
    sys.exit(main())
