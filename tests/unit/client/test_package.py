"""The client is a package of its own: installed alone it brings httpx and works."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.architecture.imports import ROOT

#: httpx and what it stands on.
EXPECTED = {"privypurse-client", "httpx", "httpcore", "h11", "anyio", "idna", "certifi"}
#: Of Python's versions, or of the virtual environment itself.
MAY_BE = {"pip", "setuptools", "typing-extensions", "typing_extensions", "sniffio"}
PROGRAM = """
import httpx, importlib.metadata, privypurse
answer = {"items": [], "next": None}
transport = httpx.MockTransport(lambda request: httpx.Response(200, json=answer))
with privypurse.PrivyPurse("http://service", "pp_x", transport=transport) as purse:
    assert purse.budgets() == []
print(importlib.metadata.version("privypurse-client"), privypurse.__version__)
"""


@pytest.mark.slow
def test_it_installs_into_a_fresh_environment(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv/bin/python"
    pip = [python, "-m", "pip", "--disable-pip-version-check", "--retries=1", "--timeout=10"]
    # A copy: building leaves files beside the sources.
    shutil.copytree(ROOT / "client", tmp_path / "client")
    done = subprocess.run(
        [*pip, "install", "--quiet", tmp_path / "client"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if done.returncode and "No matching distribution found" in done.stderr:
        pytest.skip("needs a package index")
    assert done.returncode == 0, done.stderr
    listed = subprocess.check_output([*pip, "list", "--format=json"], text=True)
    names = {package["name"] for package in json.loads(listed)}
    assert names >= EXPECTED
    assert names - MAY_BE == EXPECTED
    ran = subprocess.check_output([python, "-c", PROGRAM], text=True, cwd=tmp_path).split()
    assert len(ran) == 2
    assert ran[0] == ran[1]
    assert list((tmp_path / "venv").rglob("privypurse/py.typed"))


def test_it_depends_on_httpx_alone() -> None:
    project = tomllib.loads((ROOT / "client/pyproject.toml").read_text("utf-8"))["project"]
    assert [name.partition(">")[0] for name in project["dependencies"]] == ["httpx"]
    assert project["requires-python"] == ">=3.11"


@pytest.mark.slow
def test_a_program_that_uses_it_is_type_checked(tmp_path: Path) -> None:
    """Answers have types of their own, and a misspelt option is a type error."""
    program = tmp_path / "program.py"
    program.write_text(
        "from privypurse import PrivyPurse\n"
        "purse = PrivyPurse('http://service', 'pp_x')\n"
        "answer = purse.top_k('g', 3, 'degree', epsilon='1', sensitivity='local')\n"
        "reveal_type(answer.selected)\n"
        "reveal_type(purse.tree('t', epsilon=1).tree.predict([{}]))\n"
        "purse.top_k('g', 3, 'degree', epsilon='1', sensitivty='local')\n"
        "purse.top_k('g', 3, 'degree', epsilon='1', sensitivity='locl')\n"
    )
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", program],
        cwd=tmp_path,
        env={"MYPYPATH": str(ROOT / "client"), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line for line in checked.stdout.splitlines() if '" defined in "' not in line]
    assert len(lines) == 5, checked.stdout + checked.stderr
    assert 'program.py:4: note: Revealed type is "list[Any]"' in lines[0].replace("builtins.", "")
    assert '"list[str]"' in lines[1].replace("builtins.", "")
    assert lines[2].startswith("program.py:6: error: Unexpected keyword argument")
    assert lines[3].startswith("program.py:7: error: Argument")
