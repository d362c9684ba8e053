"""An S3-compatible server as a process of its own, on this machine, in memory."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from app.demo.service import free_port
from storage.s3 import objects
from storage.s3.cache import CachedStore
from storage.s3.objects import ObjectStore
from tests.support.patience import PATIENCE, until

KEY = {"key": "purse", "secret": "of-a-test"}
#: The timeouts of the service for connecting to an S3 store and for reading from it. A busy machine
#: may exceed them, so tests use longer ones.
IMPATIENCE = objects.CONNECT, objects.SILENCE
objects.CONNECT = objects.SILENCE = round(PATIENCE)


class StoreProcess:
    """The server, with one bucket in which every test has its own prefix."""

    def __init__(self) -> None:
        self.port = free_port()
        self.endpoint = f"http://127.0.0.1:{self.port}"
        # Credentials and settings of this machine for a real S3 store must not be used.
        own = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)],
            env=own,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._numbers = count(1)

    def wait_ready(self) -> None:
        until(self._listens)
        self.objects("s3://records")._files.mkdir("records")

    def _listens(self) -> bool:
        assert self.process.poll() is None
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False

    def address(self) -> str:
        """A new prefix."""
        return f"s3://records/installation-{next(self._numbers)}"

    def objects(self, address: str | None = None) -> ObjectStore:
        return ObjectStore(address or self.address(), endpoint=self.endpoint, **KEY)

    def cached(self, folder: Path, address: str, limit: int = 2**30) -> CachedStore:
        """The store with its cache, as a process with this data folder opens it."""
        return CachedStore(self.objects(address), folder, limit)

    def settings(self, address: str) -> dict[str, str]:
        """The environment of a process that stores its records in this store."""
        return {
            "PURSE_STORE": address,
            "PURSE_STORE_ENDPOINT": self.endpoint,
            "PURSE_STORE_KEY": KEY["key"],
            "PURSE_STORE_SECRET": KEY["secret"],
        }

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def store_process() -> Iterator[StoreProcess]:
    """A server with an empty bucket."""
    process = StoreProcess()
    try:
        process.wait_ready()
        yield process
    finally:
        process.kill()
