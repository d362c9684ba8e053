"""The commands of CONTRIBUTING for the lock files reproduce the committed ones."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.imports import ROOT
from tests.process.documents import code_of

pytestmark = pytest.mark.slow

#: Matches the errors of uv when no package index is reachable.
OFFLINE = re.compile("Failed to fetch|dns error|error sending request|Network connectivity|offline")


def test_locks_are_made_as_the_page_says(tmp_path: Path) -> None:
    beside = str(Path(sys.executable).parent)
    path = f"{beside}{os.pathsep}{os.environ['PATH']}"
    if not shutil.which("uv", path=path):
        pytest.skip("needs uv: pip install uv")
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    [lines] = [code.text for code in code_of(page) if code.text.startswith("uv ")]
    locks = re.findall(r"-o (\S+)", lines)
    assert len(locks) >= 2
    for name in ("pyproject.toml", *locks):
        shutil.copy(ROOT / name, tmp_path)
    result = subprocess.run(
        ["sh", "-eu"],
        input=lines,
        cwd=tmp_path,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if result.returncode and OFFLINE.search(result.stderr):
        pytest.skip("needs a package index")
    assert result.returncode == 0, result.stderr
    for name in locks:
        assert (tmp_path / name).read_bytes() == (ROOT / name).read_bytes(), name
