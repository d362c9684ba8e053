"""A PostgreSQL server for one test session: the one of DATABASE_URL, else a new one."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url

from tests.support.patience import PATIENCE

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "with_postgres.sh"
#: The exit status of the script if PostgreSQL is not installed.
NO_SERVER = 3


@contextmanager
def postgresql_server() -> Iterator[str | None]:
    """Yields the URL of a server for databases of tests, or None if none can be started."""
    address = os.environ.get("DATABASE_URL", "")
    if address.startswith("postgres"):
        yield address
        return
    # The command ends, and with it the server, when its standard input is closed.
    with subprocess.Popen(
        [str(SCRIPT), "sh", "-c", 'echo "$DATABASE_URL"; cat'],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        if not url and process.wait(PATIENCE) != NO_SERVER:
            assert process.stderr is not None
            raise AssertionError(process.stderr.read())
        try:
            yield url or None
        finally:
            process.stdin.close()
            process.wait(timeout=PATIENCE)


@contextmanager
def new_database() -> Iterator[str]:
    """The URL of a new, empty database; skips the test where no server can be started."""
    with postgresql_server() as server:
        if server is None:
            pytest.skip("needs PostgreSQL: apt-get install postgresql")
        name = f"services_{time.time_ns()}"
        with psycopg.connect(server.replace("+psycopg", ""), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
            yield make_url(server).set(database=name).render_as_string(hide_password=False)
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
