"""The commands of the README, run as written from the tour on, print what the text says."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from app.demo.service import ServiceProcess
from tests.architecture.imports import ROOT
from tests.process.documents import assert_shown, blocks, commands

pytestmark = pytest.mark.skipif(
    not (shutil.which("curl") and shutil.which("awk")), reason="needs curl and awk"
)


def test_every_block_works(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(blocks(text, "sh")) == 8
    [program] = blocks(text, "python")
    # Wait long enough that the upload replies "ready" on a slow machine too.
    with ServiceProcess(tmp_path / "data", PURSE_UPLOAD_WAIT="60") as service:
        here = service.url
        script = "".join(blocks(text, "sh")).replace("http://127.0.0.1:8000", here)
        played = subprocess.run(
            ["sh", "-eu"],
            input=script,
            cwd=tmp_path,
            env=commands(tmp_path),
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert played.returncode == 0, played.stdout + played.stderr
        printed = io.StringIO()
        with contextlib.chdir(tmp_path), contextlib.redirect_stdout(printed):
            exec(program.replace("http://127.0.0.1:8000", here), {})
    for name in ("ada.key", "friends.csv"):
        assert (tmp_path / name).stat().st_mode & 0o77 == 0
    assert len(json.loads(printed.getvalue())) == 3
    assert_shown("README.md", played.stdout)
    *lines, budget = played.stdout.splitlines()
    assert budget == "friends\tada\tspent ε = 1.5\tof ε = 2"
    replies: list[Any] = [json.loads(line) for line in lines]
    me, _, version, account, quote, first, again, refused, budgets, ledger = replies
    assert me["roles"] == ["analyst"]
    assert (version["version"], version["status"]) == (1, "ready")
    assert account["remaining"]["epsilon"] == "2"
    assert quote["charge"]["epsilon"] == first["charge"]["epsilon"] == "1.5"
    assert quote["affordable"] is True
    assert len(first["answer"]["selected"]) == 3
    assert again == first
    assert refused["type"].endswith("/budget-exhausted")
    assert refused["remaining"]["epsilon"] == "0.5"
    assert budgets["items"][0]["remaining"]["epsilon"] == "0.5"
    assert len(ledger["items"]) >= 1
