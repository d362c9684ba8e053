"""Each line of the pages that starts a service leads to one that is ready and stops cleanly."""

from __future__ import annotations

import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from app.demo.service import free_port
from tests.process.documents import commands, indented, lines_of
from tests.support.patience import PATIENCE

STARTING = {
    "README.md": lines_of(indented("README.md", 2)[0])[0],
    "docs/tutorial_operator.md": indented("docs/tutorial_operator.md", 1)[0].strip(),
}


def started(folder: Path, line: str, **variables: str) -> None:
    """Run ``line`` in ``folder``, wait until its service is ready, and stop it."""
    port = free_port()
    here = commands(folder) | {"PURSE_PORT": str(port)} | variables
    with subprocess.Popen(
        ["sh", "-euc", f"exec env {line}"],
        cwd=folder,
        env=here,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        deadline = time.monotonic() + 600
        try:
            with httpx.Client() as client:
                while process.poll() is None:
                    with suppress(httpx.TransportError):
                        if client.get(f"http://127.0.0.1:{port}/readyz").status_code == 200:
                            break
                    assert time.monotonic() < deadline
                    # The test waits between polls: each poll writes a line of the log, and nobody
                    # reads the pipe until the end.
                    time.sleep(0.1)
        finally:
            process.send_signal(signal.SIGTERM)
            said, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, said
    assert "Application startup complete" in said


@pytest.mark.parametrize("page", STARTING)
def test_the_line_starts_a_service(tmp_path: Path, page: str) -> None:
    (tmp_path / "secrets").mkdir(mode=0o700)
    started(tmp_path, STARTING[page])
    assert (tmp_path / "data/bootstrap-admin.key").is_file()
