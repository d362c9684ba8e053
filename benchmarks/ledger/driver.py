"""Clients of a ledger in a process of their own, so that another checkout can be measured too.

This file is run as a script with the other checkout on the path, and takes the clients from there:
their code knows its ledger. A line of JSON comes in for each round, and one with its rate goes out.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from app.demo.service import ROOT

ACCOUNTS = 1000


class Driver:
    """The process, as the bench sees it. ``accounts``: one hot account, or a thousand."""

    def __init__(self, url: str, folder: Path, root: Path = ROOT) -> None:
        from benchmarks.service.processes import environment, interpreter

        self._process = subprocess.Popen(
            [interpreter(root), __file__, url, str(folder)],
            env=environment(root),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.p99_ms: dict[str, float] = {}

    def rate(self, accounts: str, clients: int, seconds: float) -> float:
        """Pairs a second in one round."""
        assert self._process.stdin
        assert self._process.stdout
        round_of = {"accounts": accounts, "clients": clients, "seconds": seconds}
        self._process.stdin.write(json.dumps(round_of) + "\n")
        self._process.stdin.flush()
        found: dict[str, float] = json.loads(self._process.stdout.readline())
        self.p99_ms[f"{accounts}, {clients} clients"] = found["p99_ms"]
        return found["rate"]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(60)


def main() -> None:
    try:
        from benchmarks.ledger.accounts import hot_account, many_accounts, opened
        from benchmarks.ledger.clients import Clients
    except ImportError:  # checkouts from before the registry of benches
        from benchmarks.accounts import hot_account, many_accounts, opened
        from benchmarks.ledger import Clients

    url, folder = sys.argv[1:]
    with opened(url, Path(folder)) as (database, ledger):
        pairs: dict[str, Any] = {"hot": [hot_account(database)]}
        for line in sys.stdin:
            asked = json.loads(line)
            if asked["accounts"] not in pairs:
                pairs["many"] = many_accounts(database, ACCOUNTS)
            clients = Clients(ledger, pairs[asked["accounts"]], asked["clients"])
            done, seconds = clients(asked["seconds"])
            print(json.dumps({"rate": done / seconds, "p99_ms": clients.p99()}), flush=True)


if __name__ == "__main__":
    main()
