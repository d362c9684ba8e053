"""A container engine with compose, a reader who types there, and what is then reached."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from app.demo.service import ServiceProcess
from tests.architecture.imports import ROOT
from tests.process.documents import code_of, lines_of

SCRIPT = ROOT / "scripts" / "with_docker.sh"
#: Seconds for what an engine is asked to do; building two images takes some minutes.
PATIENCE = 1800


@contextmanager
def engine(*ports: int) -> Iterator[dict[str, str]]:
    """The variables that name a running engine, ours if there is none; else a skip.

    ``ports`` of this machine must be free.
    """
    for port in ports:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                pytest.skip(f"port {port} is taken")
    # It lives until the standard input of its command is closed.
    with subprocess.Popen(
        [str(SCRIPT), "sh", "-c", 'echo "DOCKER_HOST=${DOCKER_HOST-}"; cat'],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        said = process.stdout.readline().strip()
        try:
            if not said:
                why = process.stderr.read().strip()
                assert process.wait(PATIENCE) == 3, why
                pytest.skip(why)
            name, _, host = said.partition("=")
            yield {name: host} if host else {}
        finally:
            process.stdin.close()
            process.wait(timeout=PATIENCE)


class Reader:
    """Types lines of pages, one after the other, in a folder; what they export stays."""

    def __init__(self, folder: Path, variables: dict[str, str]) -> None:
        self.folder = folder
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PURSE_", "COMPOSE_")) and name != "METRICS_TOKEN_FILE"
        }
        self.variables = inherited | variables

    def type(self, line: str) -> str:
        """What is printed by a command that must succeed."""
        if line.startswith("export "):
            name, _, value = line.removeprefix("export ").partition("=")
            self.variables[name] = value
            return ""
        done = self._run(line)
        if done.returncode != 0:
            seen = "docker compose --profile '*' ps --all; docker compose --profile '*' logs -n 20"
            raise AssertionError(
                f"{line}\n{done.stderr[-4000:]}\n{self._run(seen).stdout[-20000:]}"
            )
        return done.stdout

    def _run(self, line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-c", line],
            cwd=self.folder,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )


class Published(ServiceProcess):
    """A service in containers: its address, and the first admin's key as it was printed."""

    def __init__(self, url: str, printed: str) -> None:
        self.url = url
        self._key = printed.strip()

    @property
    def admin_key(self) -> str:
        return self._key


def container_lines(page: str) -> list[str]:
    """The commands in those of a page's indented blocks that are about containers."""
    return [
        line
        for code in code_of((ROOT / page).read_text("utf-8"))
        if code.form == "indented" and ("docker compose" in code.text or "deploy/" in code.text)
        for line in lines_of(code.text)
    ]


def wait_until(holds: Callable[[], object], what: str) -> None:
    """Return when something holds, of addresses that may not be listening yet."""
    deadline = time.monotonic() + PATIENCE / 6
    while time.monotonic() < deadline:
        with suppress(httpx.TransportError):
            if holds():
                return
        time.sleep(0.5)
    raise AssertionError(what)


def wait_ready(url: str) -> None:
    """Return when a service can work."""
    wait_until(lambda: httpx.get(url + "/readyz", timeout=60).is_success, f"{url} is not ready")


def assert_version(url: str, version: str) -> None:
    # Both replicas, as the proxy takes turns.
    for _ in range(4):
        assert httpx.get(url + "/version", timeout=60).json()["version"] == version


def assert_kernels_are_the_images(reader: Reader, service: str) -> None:
    """Those of its own version, compiled, are in the folder; not what an older container left."""
    show = "from mechanisms.kernels.compiled import KERNELS; print(KERNELS)"
    inside = f"docker compose --profile scale exec {service} "
    kernels = reader.type(f"{inside} python -c '{show}'").strip()
    assert reader.type(f"{inside} ls /opt/kernels").split() == [f"kernels-{kernels}"]


def wait_for_targets(prometheus: str, count: int) -> None:
    """Prometheus has read the metrics of so many services."""

    def reached() -> bool:
        reply = httpx.get(f"{prometheus}/api/v1/query", params={"query": "sum(up)"}, timeout=60)
        if not reply.is_success:
            return False  # It is starting.
        return [one["value"][1] for one in reply.json()["data"]["result"]] == [str(count)]

    wait_until(reached, f"Prometheus does not reach {count}")
