"""Runs the tutorials of the four roles one after another, on one service."""

from __future__ import annotations

import csv
import re
import shutil
from pathlib import Path

import pytest

from app.demo.service import ServiceProcess
from tests.architecture.imports import ROOT
from tests.process.documents import assert_shown, blocks, indented
from tests.process.test_documents import run

pytestmark = pytest.mark.skipif(not shutil.which("curl"), reason="needs curl")


#: The commands for the first private answer about a table that comes from a database.
VISITS = """
cat > first.json <<'JSON'
{"dataset": "visits", "epsilon": "1", "query": {"kind": "statistic", "statistic": "count"}}
JSON
privypurse --key-file ada.key query first.json
"""


def tutorial(role: str, number: int) -> list[str]:
    """The commands of a role's page; fails unless there are ``number`` blocks."""
    commands = blocks((ROOT / f"docs/tutorial_{role}.md").read_text("utf-8"), "sh")
    assert len(commands) == number
    return commands


def played(role: str, commands: list[str], folder: Path, service: ServiceProcess) -> str:
    """What commands of a role's page print, which must be what the page shows."""
    script = "exec 2>&1\n" + "".join(commands)
    printed = run(folder, script, PRIVYPURSE_URL=service.url)
    assert_shown(f"docs/tutorial_{role}.md", printed)
    return printed


def says(printed: str, *words: str) -> None:
    for word in words:
        assert word in printed, printed


def test_the_tutorials_of_all_roles(tmp_path: Path) -> None:
    before, *operating = tutorial("operator", 7)
    run(tmp_path, before)
    secrets = tmp_path / "secrets"
    with ServiceProcess(
        tmp_path / "data", PURSE_SECRETS=str(secrets), PURSE_UPLOAD_WAIT="300"
    ) as service:
        here = {"PRIVYPURSE_URL": service.url}
        operator = played("operator", operating, tmp_path, service)
        says(
            operator,
            '{"status":"ready"}',
            "grace\tadmin\tenabled\n",
            "otto\tauditor\tenabled\n",
            '"epsilon":"8"',
            'route="/readyz",status="200"} ',
            "backed up to backup-of-today",
        )
        assert operator.endswith("\nvalid\n")
        for name in ("grace", "olympe", "ada", "otto", "secrets/purse_metrics_token"):
            file = tmp_path / (name if "/" in name else f"{name}.key")
            assert file.stat().st_mode & 0o77 == 0

        owner = played("owner", tutorial("owner", 7), tmp_path, service)
        says(
            owner,
            "survey.csv fits survey.json\nregistered survey\n",
            "refused, as it should be\nsurvey is ready, version 1\n",
            "shop.db fits visits.json\nregistered visits\nvisits is ready, version 1\n",
            "ada on survey: ε = 3, remaining ε = 3\n",
            "ada on survey: ε = 3, ρ = 0.185",
            "survey\ttable\tready\t2\n",
        )
        for checked, fault in (
            ("survey.csv --description draft.json", "draft.json: "),
            ("wrong.csv --description survey.json", "line 2, column town: "),
        ):
            says(run(tmp_path, f"privypurse check {checked} 2>&1 || true"), fault)
        assert (tmp_path / "survey.report.json").stat().st_mode & 0o77 == 0
        for draft in ("draft.json", "visits-draft.json"):
            assert not re.search(r"Brest|yes|2024|[0-9]", (tmp_path / draft).read_text())
        first = run(tmp_path, VISITS, **here)
        # Noise of scale 1 exceeds 50 with probability below e⁻⁵⁰.
        assert abs(float(re.findall(r'"value": (.+?),?\n', first)[0]) - 600) < 50

        analyst = played("analyst", tutorial("analyst", 6), tmp_path, service)
        says(
            analyst,
            '"affordable": true',
            "refused, as it should be\n",
            "survey\tada\tspent ε = 1.5, ρ = ",
        )
        one, again, telling = re.findall(
            r'"answer": \{\n? *"question": .+\n? *"(?:value|selected)": (.+?),?\n', analyst
        )
        assert one == again
        # Noise of scale 2 exceeds 100 with probability below e⁻⁴⁹.
        assert abs(float(one) - 300) < 100
        assert telling in ('"town"', '"age"')
        with (tmp_path / "my-ledger.csv").open(newline="") as file:
            assert [row["epsilon"] for row in csv.DictReader(file) if row["kind"] == "charge"]

        auditor = played("auditor", tutorial("auditor", 3), tmp_path, service)
        says(
            auditor,
            '"valid":true',
            "survey\tada\tspent ε = 1.5, ρ = ",
            '"exposure"',
            '"user.create"',
        )
        with (tmp_path / "ledger.csv").open(newline="") as file:
            entries = list(csv.DictReader(file))
        assert {row["kind"] for row in entries} == {"genesis", "charge", "limit_change"}
        receipt = re.findall(r'"receipt": "([0-9a-f]{64})"', analyst)[-1]
        [line] = indented("docs/tutorial_auditor.md", 1)
        assert run(tmp_path, line.replace("HASH", receipt)).endswith("valid\n")
