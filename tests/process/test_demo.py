"""``./run demo`` plays the whole session, shows every step as curl, and leaves nothing behind."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.architecture.imports import ROOT


def test_the_demonstration_plays_to_its_end(tmp_path: Path) -> None:
    played = subprocess.run(
        [sys.executable, "-m", "app.demo"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert played.returncode == 0, played.stdout + played.stderr
    assert "private answer:" in played.stdout
    assert "budget-exhausted" in played.stdout
    assert len(re.findall(r"^\$ curl .*\n(?:\n|\d{3} )", played.stdout, re.MULTILINE)) >= 12
    assert not re.search(r"pp_\w", played.stdout)
    assert list(tmp_path.iterdir()) == []
