"""To add a query kind is to add its folder: nothing else of the service is touched."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from app.service import speeds
from tests.architecture.imports import ROOT

COIN = ROOT / "tests" / "support" / "coin"
#: These tests hold for every kind of query, also for a new one. One of them is left out below,
#: because it compares texts with an earlier version of the service, which lacks the new kind.
GENERIC = "tests/unit/app/queries/test_kinds.py"


@pytest.mark.long
def test_a_folder_is_a_kind(tmp_path: Path) -> None:
    """A copy of the service with one more folder knows it everywhere."""
    shutil.copytree(ROOT / "app", tmp_path / "app")
    folder = tmp_path / "app" / "queries" / "coin"
    shutil.copytree(COIN, folder, ignore=shutil.ignore_patterns("__pycache__", "checks.py"))
    paths = " ".join(map(str, (tmp_path, ROOT, ROOT / "client")))
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider"]
    command += ["-o", f"pythonpath={paths}", "-k", "not before_kinds_were_folders"]
    command += [str(COIN / "checks.py"), GENERIC]
    # The new kind of query, coin, states no work to be timed. So the copy of the service may use
    # the stored speeds of this machine. Otherwise it would measure them again.
    of_this_tree = {"WORK_OF_THIS_TREE": speeds._statements()}
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), **of_this_tree}
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr[-2000:]
    assert "coin" in run.stdout or "passed" in run.stdout
