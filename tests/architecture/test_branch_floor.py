"""The branch floor fails a run for one untaken branch that a count of lines would hide."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.imports import ROOT

BRANCHES = """def sign(x):
    y = 1
    if x < 0:
        y = -1
    return y
"""


def full_run(
    folder: Path, test: str, *options: str, name: str = "tests/unit/accounting/test_pure.py"
) -> subprocess.CompletedProcess[str]:
    """pytest over a package of one function, measured as ``./run test`` measures."""
    (folder / "pure.py").write_text(BRANCHES)
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(test)
    # Only these pytest plugins are loaded, because loading all plugins takes longer than the test
    # itself.
    plugins = ["-p", "tests.support.branch_floor", "-p", "pytest_cov.plugin", "-p", "xdist.plugin"]
    plugins += ["-p", "no:cacheprovider", "--import-mode=importlib"]
    measured = ["--cov=pure", "--cov-branch", "--cov-report="]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, *measured, *options],
        cwd=folder,
        env={k: v for k, v in os.environ.items() if not k.startswith("COV")}
        | {"PYTHONPATH": f"{folder}:{ROOT}", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("options", [(), ("-n", "2")])
def test_an_untaken_branch_fails_the_run(tmp_path: Path, options: tuple[str, ...]) -> None:
    test = "from pure import sign\n\ndef test_sign():\n    assert sign(-2) == -1\n"
    run = full_run(tmp_path, test, "--branch-floor=95", *options)
    assert run.returncode == 1, run.stdout + run.stderr
    assert "branch coverage of pure.py: 50.0 % of 2, below 95 %" in run.stdout
    assert "pure.py: [[3, 5]]" in run.stdout


def test_all_branches_taken_pass(tmp_path: Path) -> None:
    test = "from pure import sign\n\ndef test_sign():\n    assert sign(-2) + sign(2) == 0\n"
    run = full_run(tmp_path, test, "--branch-floor=95")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "branch coverage of pure.py: 100.0 % of 2" in run.stdout


def test_what_an_untraced_test_takes_does_not_count(tmp_path: Path) -> None:
    """Not in its threads either; and what comes after it is traced again."""
    threads = """from threading import Thread
from pure import sign

def test_sign():
    thread = Thread(target=sign, args=(-2,))
    thread.start()
    thread.join()
    assert sign(-2) == -1
"""
    (tmp_path / "tests/unit/mechanisms").mkdir(parents=True)
    test = "from pure import sign\n\ndef test_sign():\n    assert sign(2) == 1\n"
    (tmp_path / "tests/unit/mechanisms/test_pure.py").write_text(test)
    run = full_run(tmp_path, threads, "--branch-floor=95", name="tests/process/test_pure.py")
    assert run.returncode == 1, run.stdout + run.stderr
    assert "pure.py: [[3, 4]]" in run.stdout


def test_without_the_option_nothing_is_demanded(tmp_path: Path) -> None:
    run = full_run(tmp_path, "def test_nothing():\n    import pure\n")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "branch coverage" not in run.stdout
