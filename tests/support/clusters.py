"""Starts a scheduler and workers over TLS on this machine, as an operator does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from app.cluster.certificates import make_certificates
from app.cluster.executor import ClusterExecutor
from app.cluster.roles import security_of
from app.demo.service import ROOT, free_port
from app.engine.execution import ThreadExecutor
from storage.files.shared import Shared
from tests.support.patience import PATIENCE, until


class Processes:
    """The processes of one cluster over one data folder; each can be killed by itself."""

    def __init__(self, folder: Path, store: dict[str, str] | None = None) -> None:
        """With ``store``, the settings of an S3 store, every worker has its own data folder."""
        self.folder, self.data, self.store = folder, folder / "data", store or {}
        self.data.mkdir(parents=True, exist_ok=True)
        self.certificates = folder / "certificates"
        make_certificates(self.certificates)
        self.address = f"tls://127.0.0.1:{free_port()}"
        self.scheduler: subprocess.Popen[bytes] | None = None
        self.workers: list[subprocess.Popen[bytes]] = []

    def settings(self, role: str) -> dict[str, str]:
        """The environment of a process in a role."""
        files = (("CA", "ca.pem"), ("CERT", f"{role}.pem"), ("KEY", f"{role}.key"))
        named = {f"PURSE_CLUSTER_{key}": str(self.certificates / file) for key, file in files}
        return {"PURSE_CLUSTER": self.address, **named, **self.store}

    def start_scheduler(self) -> None:
        port = self.address.rpartition(":")[2]
        self.scheduler = self.start("scheduler", "--port", port)

    def start_worker(self, role: str = "worker") -> None:
        data = self.data
        if self.store:
            data = self.folder / f"worker-{len(self.workers)}"
            data.mkdir()
        self.workers.append(self.start("worker", "--threads", "1", "--data", str(data), role=role))

    def start(
        self, command: str, *options: str, role: str | None = None
    ) -> subprocess.Popen[bytes]:
        here = {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'client'}"}
        with (self.folder / f"{command}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "app.cli", command, *options],
                env=os.environ | here | self.settings(role or command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def log(self, command: str) -> str:
        return (self.folder / f"{command}.log").read_text("utf-8", "replace")

    def wait_for(self, command: str, text: str, times: int = 1) -> None:
        """Block until a process has logged ``text`` at least ``times`` times."""
        try:
            until(lambda: self.log(command).count(text) >= times)
        except AssertionError:
            raise AssertionError(self.log("scheduler") + self.log("worker")) from None

    @contextmanager
    def executor(self, role: str = "client", **options: Any) -> Iterator[ClusterExecutor]:
        """The executor of a service, which sends all work to the cluster, however small."""
        folder = self.certificates
        files = (folder / "ca.pem", folder / f"{role}.pem", folder / f"{role}.key")
        threads = ThreadExecutor(2)
        cluster = ClusterExecutor(
            threads,
            self.address,
            security_of(files),
            Shared(self.data),
            **{"worth": 0} | options,
        )
        if "patience" not in options:
            impatient(cluster, PATIENCE)
        try:
            yield cluster
        finally:
            cluster.close()
            threads.close()


def impatient(executor: ClusterExecutor, seconds: float) -> None:
    """Make the executor give up a scheduler that has been unreachable for ``seconds``."""
    executor._patience = executor._silence = seconds


@contextmanager
def cluster(
    folder: Path, workers: int = 2, store: dict[str, str] | None = None
) -> Iterator[Processes]:
    """A scheduler and ``workers`` workers of one thread each, ready for work."""
    with ExitStack() as closing:
        processes = Processes(folder, store)
        closing.callback(_end, processes)
        processes.start_scheduler()
        for _ in range(workers):
            processes.start_worker()
        processes.wait_for("scheduler", "Starting worker compute stream", workers)
        yield processes


def _end(processes: Processes) -> None:
    for process in (*processes.workers, processes.scheduler):
        if process is not None:
            process.kill()
            process.wait()
