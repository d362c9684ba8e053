"""Clients of a ledger in a process of their own, so that another checkout can be measured too.

This file is run as a script with the other checkout on the path, and takes the clients from there:
their code knows its ledger. A line of JSON comes in for each round, and one with its rate goes out.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from app.demo.service import ROOT

ACCOUNTS = 1000


class Driver:
    """The process, as the bench sees it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.p99_ms: dict[str, float] = {}

    @classmethod
    @contextmanager
    def started(cls, url: str, folder: Path, root: Path = ROOT) -> Iterator[Driver]:
        """The clients of a checkout on one database, until the block ends."""
        from benchmarks.service.processes import environment, interpreter

        with subprocess.Popen(
            [interpreter(root), __file__, url, str(folder)],
            env=environment(root),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            yield cls(process)

    def rate(self, accounts: str, clients: int, seconds: float) -> float:
        """Pairs per second in one round, on one ``hot`` account or on ``many``."""
        assert self._process.stdin
        assert self._process.stdout
        round_of = {"accounts": accounts, "clients": clients, "seconds": seconds}
        self._process.stdin.write(json.dumps(round_of) + "\n")
        self._process.stdin.flush()
        outcome: dict[str, float] = json.loads(self._process.stdout.readline())
        self.p99_ms[f"{accounts}, {clients} clients"] = outcome["p99_ms"]
        return outcome["rate"]


def main() -> None:
    try:
        from benchmarks.ledger.accounts import hot_account, many_accounts, opened
        from benchmarks.ledger.clients import Clients
    except ImportError:  # In an older checkout of the project, these modules have other names.
        from benchmarks.accounts import (  # type: ignore[import, no-redef]
            hot_account,
            many_accounts,
            opened,
        )
        from benchmarks.ledger import Clients  # type: ignore[attr-defined, no-redef]

    url, folder = sys.argv[1:]
    with opened(url, Path(folder)) as (database, ledger):
        pairs: dict[str, Any] = {"hot": [hot_account(database)]}
        for line in sys.stdin:
            order = json.loads(line)
            if order["accounts"] not in pairs:
                pairs["many"] = many_accounts(database, ACCOUNTS)
            clients = Clients(ledger, pairs[order["accounts"]], order["clients"])
            done, seconds = clients(order["seconds"])
            print(json.dumps({"rate": done / seconds, "p99_ms": clients.p99()}), flush=True)


if __name__ == "__main__":
    main()
