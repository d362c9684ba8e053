"""Runs the real service in a separate process, on a free port of this machine."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

import httpx

ROOT = Path(__file__).resolve().parents[2]


class ServiceDied(Exception):
    """The service ended or did not reply in time; the message contains the end of its log."""


class ServiceProcess:
    """A process of ``app.cli serve`` on one data folder, which can be started repeatedly.

    ``settings`` are environment variables, such as ``PURSE_RELEASE_INTERVAL="0"``. The process does
    not inherit the caller's ``PURSE_…`` variables or database, so it cannot touch other data.
    """

    #: The Python module that the process runs.
    MODULE = "app.cli"

    def __init__(self, data: Path, *, port: int | None = None, **settings: str) -> None:
        self.data = data
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = data.parent / f"service-{self.port}.log"
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id of the service."""
        return self._running().pid

    @property
    def admin_key(self) -> str:
        """The key of the first admin, which the first start of the service wrote to a file."""
        return (self.data / "bootstrap-admin.key").read_text("utf-8").strip()

    def start(self) -> Self:
        """Start the process without waiting for it."""
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("PURSE_") and name != "DATABASE_URL"
        }
        here = {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'client'}", "PYTHONSAFEPATH": "1"}
        serve = [sys.executable, "-m", self.MODULE, "serve", "--host", "127.0.0.1"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*serve, "--port", str(self.port), "--data", str(self.data)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=inherited | here | self._settings,
            )
        return self

    def wait_ready(self, seconds: float = 600) -> Self:
        """Return when ``/readyz`` replies 200. Raises: ServiceDied if ``seconds`` pass before."""
        deadline = time.monotonic() + seconds
        with httpx.Client(timeout=5) as client:
            while time.monotonic() < deadline:
                if (status := self._running().poll()) is not None:
                    raise ServiceDied(f"it ended with status {status}:\n{self.log_end()}")
                try:
                    if client.get(self.url + "/readyz").status_code == 200:
                        return self
                except httpx.TransportError:
                    pass  # The service does not listen yet, so the loop tries again.
                time.sleep(0.05)
        raise ServiceDied(f"not ready after {seconds:g} s:\n{self.log_end()}")

    def stop(self, seconds: float = 120) -> int:
        """End the process with SIGTERM, as an operator would, and return its exit status."""
        process = self._running()
        process.terminate()
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise ServiceDied(f"still there {seconds:g} s after SIGTERM") from None

    def kill(self) -> None:
        """End the process as a crash would: it runs no code of its own any more."""
        process = self._running()
        process.kill()
        process.wait()

    def log_end(self) -> str:
        """The last 20 lines of the log."""
        return "\n".join(self.log.read_text("utf-8", "replace").splitlines()[-20:])

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise ServiceDied("it was never started")
        return self._process

    def __enter__(self) -> Self:
        try:
            return self.start().wait_ready()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *failure: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self.stop()


def free_port() -> int:
    """A free port below the range that outgoing connections use.

    For about a minute this function returns the port to no other caller, in any process.
    """
    while True:
        address = ("127.0.0.1", random.randrange(15_000, 32_000))
        with socket.socket() as probe, suppress(OSError):
            probe.bind(address)
            probe.listen(1)
            # No other caller may get this port within the next minute. So a connection is made and
            # closed, which blocks the port for about that long. A ``bind`` without SO_REUSEADDR, as
            # above, then fails. The service can still bind, because its socket and this one have
            # the option.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with socket.create_connection(address), probe.accept()[0]:
                return address[1]
