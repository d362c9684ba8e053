"""Processes that use the ledger until they are killed, and the journal of their results.

A nursery is a process of one thread that has imported everything; it forks a victim for each job,
so that hundreds of crashes take seconds. A victim writes a line to its journal *after* a call of
the ledger returned: such a result has left the process and must never be revoked.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

from accounting.errors import BudgetExhausted
from accounting.privacy_loss import PrivacyLoss
from storage.database.database import Database, _engine
from storage.errors import Busy, CommitUnknown, QueryReleased, StillRunning
from storage.ledger.ledger import Ledger, Replay, Reserve
from tests.support import failpoints
from tests.support.world import BODY_HASH, MINUTE

ROOT = Path(__file__).resolve().parents[2]
CHARGE = PrivacyLoss(10**6)


@dataclass(frozen=True)
class Job:
    """The work of one victim: one request per key, unless it is killed before.

    The charge of a key that ends in ``-`` is released instead of settled. ``failpoint`` is the text
    that ``tests.support.failpoints`` reads. The nursery kills the victim after ``seconds``, or
    never if that is 0. ``clients`` clients send requests concurrently.
    """

    url: str
    journal: str
    dataset: int
    analyst: int
    keys: tuple[str, ...]
    clients: int = 1
    failpoint: str = ""
    seconds: float = 0.0
    #: True if a client retries immediately when the database was busy.
    patient: bool = False
    #: The amounts of the possible charges. Each key always has the same one of them.
    charges: tuple[tuple[int, ...], ...] = (CHARGE.amounts,)


class Nursery:
    """Runs jobs in forked processes, one at a time."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.victims"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, *_exception: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()

    def run(self, job: Job) -> bool:
        """Run the job; return True if the victim was killed, False if it finished."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asdict(job)) + "\n")
        self._process.stdin.flush()
        status = int(self._process.stdout.readline())
        assert status in (0, -signal.SIGKILL), f"a victim failed by itself: {status}"
        return status != 0


def main() -> None:
    """Runs the nursery process: forks a victim for each job on standard input.

    A job is one line of JSON. The exit status of its victim is one line on standard output.
    """
    for line in sys.stdin:
        job = Job(**json.loads(line))
        pid = os.fork()
        if pid == 0:
            os._exit(_live(job))
        if job.seconds:
            time.sleep(job.seconds)
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _live(job: Job) -> int:
    try:
        os.environ["FAILPOINT"] = job.failpoint
        database = Database(_engine(job.url))
        failpoints.install(database)
        asyncio.run(_Victim(job, database).work())
        database.close()
    except BaseException as error:
        print(repr(error), file=sys.stderr, flush=True)
        return 1
    return 0


class _Victim:
    def __init__(self, job: Job, database: Database) -> None:
        self._job = job
        self._ledger = Ledger(database, lease_us=MINUTE)
        self._journal = os.open(job.journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._keys = list(reversed(job.keys))

    async def work(self) -> None:
        await asyncio.gather(*(self._client() for _ in range(self._job.clients)))

    async def _client(self) -> None:
        while self._keys or self._job.seconds:
            if not self._keys:
                # A job that runs for a number of seconds repeats its keys until the process is
                # killed.
                self._keys = list(reversed(self._job.keys))
            key = self._keys.pop()
            try:
                await self._ask(key)
            except (StillRunning, QueryReleased, BudgetExhausted, Busy, CommitUnknown) as told:
                # A client receives an error and retries with the same key.
                if self._job.patient and isinstance(told, Busy):
                    self._keys.append(key)

    async def _ask(self, key: str) -> None:
        outcome = await self._ledger.reserve(self._request(key))
        if isinstance(outcome, Replay):
            self._say("left", key, outcome.body)
            return
        if key.endswith("-") and outcome.attempt == 1:
            if await self._ledger.release(outcome):
                self._say("released", key)
            return
        self._say("opened", key)
        # Each attempt has another answer, because each draws new noise.
        body = f"{key} {outcome.attempt} {uuid4().hex}".encode()
        if await self._ledger.settle(outcome, status=201, body=body, release_us=0):
            self._say("left", key, body)

    def _request(self, key: str) -> Reserve:
        job = self._job
        charge = PrivacyLoss(*job.charges[sum(key.encode()) % len(job.charges)])
        return Reserve(uuid4(), job.analyst, job.dataset, key, BODY_HASH, charge, b"{}")

    def _say(self, what: str, key: str, body: bytes = b"") -> None:
        os.write(self._journal, f"{json.dumps([what, key, body.hex()])}\n".encode())


def said(journal: Path) -> list[list[Any]]:
    """The lines of a journal: event, key, body."""
    if not journal.exists():
        return []
    return [json.loads(line) for line in journal.read_text().splitlines()]


if __name__ == "__main__":
    main()
