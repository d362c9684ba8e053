"""A container engine with compose, a shell that runs the pages' commands, and their services."""

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
#: The most seconds for one command of the container engine; to build two images takes some minutes.
PATIENCE = 1800


@contextmanager
def engine(*ports: int) -> Iterator[dict[str, str]]:
    """The variables that name a running engine and its stand-ins for the images of others.

    Starts one if there is none, else skips the test.
    The ``ports`` of this machine must be free.
    """
    for port in ports:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                pytest.skip(f"port {port} is taken")
    # The container engine runs until the standard input of this command is closed.
    with subprocess.Popen(
        [str(SCRIPT), "sh", "-c", "echo : $(env | grep -E '^(DOCKER_HOST|[A-Z]+_IMAGE)='); cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        said = process.stdout.readline().split()
        try:
            if not said:
                why = process.stderr.read().strip()
                assert process.wait(PATIENCE) == 3, why
                pytest.skip(why)
            yield dict(variable.split("=", 1) for variable in said[1:])
        finally:
            process.stdin.close()
            process.wait(timeout=PATIENCE)


class Reader:
    """Runs lines of pages one by one in a folder; exported variables persist."""

    def __init__(self, folder: Path, variables: dict[str, str]) -> None:
        self.folder = folder
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PURSE_", "COMPOSE_")) and name != "METRICS_TOKEN_FILE"
        }
        self.variables = inherited | variables

    def type(self, line: str) -> str:
        """Runs a command that must succeed and returns its output."""
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
    """The commands of a page's indented blocks about containers."""
    return [
        line
        for code in code_of((ROOT / page).read_text("utf-8"))
        if code.form == "indented" and ("docker compose" in code.text or "deploy/" in code.text)
        for line in lines_of(code.text)
    ]


def wait_until(holds: Callable[[], object], what: str) -> None:
    """Poll until ``true`` holds; a refused connection counts as not yet."""
    deadline = time.monotonic() + PATIENCE / 6
    while time.monotonic() < deadline:
        with suppress(httpx.TransportError):
            if holds():
                return
        time.sleep(0.5)
    raise AssertionError(what)


def wait_ready(url: str) -> None:
    """Block until a service reports that it is ready."""
    wait_until(lambda: httpx.get(url + "/readyz", timeout=60).is_success, f"{url} is not ready")


def assert_version(url: str, version: str) -> None:
    # The proxy alternates between the two replicas, so these requests reach both.
    for _ in range(4):
        assert httpx.get(url + "/version", timeout=60).json()["version"] == version


def assert_kernels_are_the_images(reader: Reader, service: str) -> None:
    """The folder holds the compiled kernels of this image, none of an older container."""
    show = "from mechanisms.kernels.compiled import KERNELS; print(KERNELS)"
    inside = f"docker compose --profile scale exec {service} "
    kernels = reader.type(f"{inside} python -c '{show}'").strip()
    assert reader.type(f"{inside} ls /opt/kernels").split() == [f"kernels-{kernels}"]


def wait_for_targets(prometheus: str, count: int) -> None:
    """Block until Prometheus has read the metrics of that many services."""

    def reached() -> bool:
        reply = httpx.get(f"{prometheus}/api/v1/query", params={"query": "sum(up)"}, timeout=60)
        if not reply.is_success:
            return False  # Prometheus is still starting, so the test asks again.
        return [one["value"][1] for one in reply.json()["data"]["result"]] == [str(count)]

    wait_until(reached, f"Prometheus does not reach {count}")
