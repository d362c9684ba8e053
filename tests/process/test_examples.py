"""The examples, run as their readers run them: against a live service, one after another."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.demo.service import ServiceProcess
from privypurse import PrivyPurse
from tests.architecture.imports import ROOT
from tests.process.conftest import QUICK

EXAMPLES = {
    "influential_nodes": r"most influential: \[\d+(, \d+){4}\][\s\S]*most ε = \d",
    "decision_tree": r"88: (yes|no), ill with probability [01]\.\d\d[\s\S]*drawn in tree\.svg",
    "distances_and_clusters": r"Aix +0\.00 [\s\S]*assigned: \[\d, \d\]",
    "statistics_by_quote": r"costs ε = 0\.29\d+\n\d+ people do no sport[\s\S]*charge ε = ",
}


@dataclass
class Shell:
    """The folder and the variables with which the examples run."""

    folder: Path
    variables: dict[str, str]

    def run(self, name: str) -> str:
        played = self.start(name)
        assert played.returncode == 0, played.stdout + played.stderr
        return played.stdout

    def start(self, name: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, ROOT / "examples" / f"{name}.py"],
            cwd=self.folder,
            env=os.environ | {"PYTHONPATH": str(ROOT / "client")} | self.variables,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A service that the first example has set up, and the analyst's key that it printed."""
    folder = tmp_path_factory.mktemp("examples")
    with ServiceProcess(folder / "data", **QUICK) as service:
        shell = Shell(folder, {"PRIVYPURSE_URL": service.url, "PRIVYPURSE_KEY": service.admin_key})
        printed = shell.run("set_up")
        match = re.fullmatch(r"export PRIVYPURSE_KEY=(pp_\w+)\n", printed)
        assert match is not None, printed
        again = shell.start("set_up")
        assert (again.returncode, again.stdout) == (1, "")
        assert again.stderr.startswith(f"{service.url} is not new: ")
        shell.variables["PRIVYPURSE_KEY"] = match[1]
        yield shell


def test_all_examples_are_here() -> None:
    assert {path.stem for path in (ROOT / "examples").glob("*.py")} == {"set_up", *EXAMPLES}


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(shell: Shell, name: str) -> None:
    printed = shell.run(name)
    assert re.search(EXAMPLES[name], printed), printed


def test_the_ledger_is_whole_after_them(shell: Shell) -> None:
    variables = shell.variables
    with PrivyPurse(variables["PRIVYPURSE_URL"], variables["PRIVYPURSE_KEY"]) as purse:
        assert purse.verify().valid
        assert {account.analyst for account in purse.budgets()} == {"ada"}
        assert purse.me().roles == ["analyst"]
