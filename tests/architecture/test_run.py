"""``./run`` sets a checkout up once, resumes after an interruption, and says what is missing.

The set-up is run for real, on a miniature checkout with empty lock files: no downloads.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from privypurse.cli import cli
from tests.architecture.imports import ROOT
from tests.support.patience import until

SCRIPTS = (
    "deploy/make_secrets.sh",
    "deploy/pin_images.sh",
    "scripts/build_image.sh",
    "scripts/stand_ins/images.sh",
    "scripts/stand_ins/postgres.sh",
    "scripts/stand_ins/python.sh",
    "scripts/with_docker.sh",
    "scripts/with_postgres.sh",
)
#: The most seconds that a set-up by ``./run`` may take on a busy machine.
SETTING_UP = 600
SERVE = """import os, sys
print("served", os.environ["PURSE_DATA"], *sys.argv[1:])
"""
CLIENT = """import sys
print("sent", *sys.argv[1:])
"""
WARM = """import pathlib, time
log = pathlib.Path(__file__).with_name("warm.log")
log.open("a").write("started\\n")
time.sleep({seconds})
log.open("a").write("finished\\n")
"""


class Checkout:
    """A miniature of the project: the real ``run``, and modules that say that they ran."""

    def __init__(self, root: Path, warm_seconds: float = 0) -> None:
        self.root = root
        for package in ("app/service", "client/privypurse", "mechanisms"):
            (root / package).mkdir(parents=True)
        shutil.copy2(ROOT / "run", root / "run")
        (root / "app/cli.py").write_text(SERVE)
        (root / "client/privypurse/cli.py").write_text(CLIENT)
        (root / "requirements.lock").write_text("")
        self.warm_for(warm_seconds)

    def warm_for(self, seconds: float) -> None:
        (self.root / "app/service/warm.py").write_text(WARM.format(seconds=seconds))

    @property
    def warm_log(self) -> list[str]:
        log = self.root / "app/service/warm.log"
        return log.read_text().split() if log.exists() else []

    def start(self, *arguments: str, cwd: Path, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self.root / "run", *arguments],
            cwd=cwd,
            env=clean_environment() | {"PYTHON": sys.executable} | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str, cwd: Path, **environment: str) -> tuple[int, str, str]:
        process = self.start(*arguments, cwd=cwd, **environment)
        out, err = process.communicate(timeout=SETTING_UP)
        return process.returncode, out, err


def clean_environment() -> Mapping[str, str]:
    return {k: v for k, v in os.environ.items() if not k.startswith(("PURSE_", "PYTHON"))}


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path / "a check out")


def test_the_script_is_executable_posix_shell() -> None:
    assert os.access(ROOT / "run", os.X_OK)
    for shell in ("sh", "dash"):
        if shutil.which(shell):
            assert subprocess.run([shell, "-n", ROOT / "run"], check=False).returncode == 0


def test_shellcheck_finds_nothing() -> None:
    checker = shutil.which("shellcheck", path=str(Path(sys.executable).parent)) or shutil.which(
        "shellcheck"
    )
    if not checker:
        pytest.skip("needs shellcheck")
    report = subprocess.run(
        [checker, "run", ".ci/run", *SCRIPTS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert report.returncode == 0, report.stdout


@pytest.mark.parametrize(
    ("types", "tests", "says"),
    [
        (0, 0, ""),
        (1, 0, "failed: types"),
        (0, 2, "failed: tests"),
        (1, 1, "failed: tests and types"),
    ],
)
def test_types_are_checked_beside_the_tests(
    checkout: Checkout, types: int, tests: int, says: str
) -> None:
    """Either fails the run, and what the type checker says follows what the tests say."""
    (checkout.root / "requirements-dev.lock").write_text("")
    venv = checkout.root / ".venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "installed-requirements-dev.lock").write_text("")
    python = venv / "bin/python"
    python.write_text(
        f"""#!/bin/sh
        case "$*" in
          *mypy*) echo "of the types"; exit {types} ;;
          *pytest*) echo "of the tests"; exit {tests} ;;
        esac
        """
    )
    python.chmod(0o755)
    (venv / "warmed").write_text("")
    status, out, err = checkout.run("test", cwd=checkout.root)
    assert status == int(bool(types or tests))
    assert out == "of the tests\n"
    assert err.index("run: tests\n") < err.index("of the types\n")
    assert ("run: failed" in err) == bool(says)
    assert says in err


def test_help_names_every_command(checkout: Checkout) -> None:
    for argument in ("help", "--help", "-h"):
        status, out, _ = checkout.run(argument, cwd=checkout.root)
        assert status == 0
        assert all(f"./run {word}" in out for word in ("serve", "demo", "users", "migrate", "help"))
    assert not (checkout.root / ".venv").exists()


def test_without_a_usable_python_it_prints_the_one_missing_line(checkout: Checkout) -> None:
    """Debian's python3 alone has no ensurepip: here every python on the path fails so."""
    fake = checkout.root / "bin"
    fake.mkdir()
    for name in ("python3", "python3.11", "python3.12", "python3.13"):
        (fake / name).write_text("#!/bin/sh\nexit 1\n")
        (fake / name).chmod(0o755)
    status, out, err = checkout.run(
        cwd=checkout.root, PYTHON="", PATH=f"{fake}{os.pathsep}{os.environ['PATH']}"
    )
    assert (status, out) == (1, "")
    assert [line for line in err.splitlines() if "apt-get" in line] == [
        "run:     apt-get install -y python3 python3-venv"
    ]
    assert not (checkout.root / ".venv").exists()


def test_it_sets_up_once_and_serves_from_anywhere(checkout: Checkout, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "app").mkdir(parents=True)
    (elsewhere / "app/cli.py").write_text("print('the wrong module')")
    (elsewhere / "privypurse").mkdir()
    (elsewhere / "privypurse/cli.py").write_text("print('the wrong module')")
    hostile = {"PIP_USER": "1", "PIP_TARGET": "t", "PIP_REQUIRE_VIRTUALENV": "1", "PYTHONHOME": "/"}

    status, out, err = checkout.run(cwd=elsewhere, **hostile)
    assert (status, out) == (0, f"served {checkout.root / 'data'} serve\n"), err
    assert "installing requirements.lock" in err

    status, out, err = checkout.run("serve", "--port", "81", cwd=elsewhere, PURSE_DATA="d")
    assert (status, out, err) == (0, "served d serve --port 81\n", "")
    assert checkout.warm_log == ["started", "finished"]

    # ``./run`` passes every command that is not its own on to the command line of the service,
    # which may refuse it.
    for line in ("migrate --help", "scheduler --port 1", "x"):
        status, out, err = checkout.run(*line.split(), cwd=elsewhere, PURSE_DATA="d")
        assert (status, out, err) == (0, f"served d {line}\n", "")

    # ``./run`` passes the client's commands, also with options before a command, on to the client.
    names = [str(one.name) for one in (*cli.registered_groups, *cli.registered_commands)]
    assert len(names) == 19
    for line in ("users list", "--url http://u --key k budgets", "--url=http://u x", *names):
        status, out, err = checkout.run(*line.split(), cwd=elsewhere)
        assert (status, out, err) == (0, f"sent {line}\n", "")

    # After a change of the lock file, ``./run`` installs the packages and compiles the kernels
    # again.
    (checkout.root / "requirements.lock").write_text("# changed\n")
    checkout.warm_for(0)
    _, _, err = checkout.run(cwd=elsewhere)
    assert "installing requirements.lock" in err
    assert checkout.warm_log == ["started", "finished"] * 2


def test_two_at_once_set_up_once(checkout: Checkout) -> None:
    checkout.warm_for(1)
    both = [checkout.start(cwd=checkout.root) for _ in range(2)]
    results = [process.communicate(timeout=SETTING_UP) for process in both]
    assert [process.returncode for process in both] == [0, 0], results
    assert sum("installing" in err for _, err in results) == 1
    assert sum("waiting" in err for _, err in results) == 1
    assert checkout.warm_log == ["started", "finished"]


def test_an_interrupted_set_up_resumes(checkout: Checkout) -> None:
    checkout.warm_for(60)
    process = checkout.start(cwd=checkout.root)
    until(lambda: checkout.warm_log)
    assert checkout.warm_log == ["started"]
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=SETTING_UP)

    # An interrupted set-up may leave a virtual environment without a working pip. It must be
    # created again.
    shutil.rmtree(next((checkout.root / ".venv/lib").glob("python*/site-packages/pip")))
    (checkout.root / ".venv/installed-requirements.lock").unlink()
    checkout.warm_for(0)
    status, out, err = checkout.run(cwd=checkout.root)
    assert (status, out) == (0, f"served {checkout.root / 'data'} serve\n"), err
    assert "making .venv" in err
