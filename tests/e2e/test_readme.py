"""The tour of the README, typed as it stands, works and says what the text says."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from app.demo.service import ServiceProcess
from tests.architecture.imports import ROOT

pytestmark = pytest.mark.skipif(
    not (shutil.which("curl") and shutil.which("awk")), reason="needs curl and awk"
)


def test_every_block_of_the_tour_works(tmp_path: Path) -> None:
    tour = re.search(
        r"^## Five-minute tour$(.*?)^## ", (ROOT / "README.md").read_text("utf-8"), re.M | re.S
    )
    assert tour is not None
    blocks = re.findall(r"^```sh\n(.*?)^```$", tour[1], re.M | re.S)
    assert len(blocks) == 7
    with ServiceProcess(tmp_path / "data") as service:
        script = "".join(blocks).replace("http://127.0.0.1:8000", service.url)
        played = subprocess.run(
            ["sh", "-eu"],
            input=script,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert played.returncode == 0, played.stdout + played.stderr
    replies: list[Any] = [json.loads(line) for line in played.stdout.splitlines()]
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
