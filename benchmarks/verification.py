"""How fast the ledger is verified: every chain, charge and ending of a large one.

    python -m benchmarks.verification [--queries N]

Expected: 10⁵ entries a second of processor time, the best of five; status 1 when it is missed.
"""

from __future__ import annotations

import sys
import tempfile
import time
from argparse import ArgumentParser
from pathlib import Path

from benchmarks.accounts import ANSWER, hot_account, opened, request
from storage.assurance.verification import verify
from storage.ledger.ledger import Reservation

EXPECTED = 100_000


def main() -> int:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=5_000)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as name,
        opened(f"sqlite:///{name}/l.db", Path(name)) as (
            database,
            ledger,
        ),
    ):
        pair = hot_account(database)
        for _ in range(options.queries):
            held = ledger.reserve(request(pair))
            assert isinstance(held, Reservation)
            ledger.settle(held, status=201, body=ANSWER, release_us=held.reserved_us)
        taken = []
        for _ in range(5):
            started = time.process_time()
            found = verify(database)
            taken.append(time.process_time() - started)
    rate = found.entries / min(taken)
    good = found.valid and rate >= EXPECTED
    verdict = "holds" if good else "FAILS"
    print(f"{found.entries:,} entries, {rate:,.0f} a second (expected {EXPECTED:,})  {verdict}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
