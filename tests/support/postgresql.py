"""A PostgreSQL server for one test session: the one in DATABASE_URL, or a fresh one of our own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.patience import PATIENCE

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "with_postgres.sh"


@contextmanager
def postgresql_server() -> Iterator[str | None]:
    """The URL of a server that may be filled with throw-away databases; None: no server here."""
    given = os.environ.get("DATABASE_URL", "")
    if given.startswith("postgres"):
        yield given
        return
    # The server lives until the standard input of its command is closed.
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
        try:
            yield url or None
        finally:
            process.stdin.close()
            process.wait(timeout=PATIENCE)
