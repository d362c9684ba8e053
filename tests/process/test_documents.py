"""Pages of the documents whose code is run from top to bottom against a live service."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from app.demo.service import ServiceProcess
from tests.architecture.imports import ROOT
from tests.process.conftest import QUICK
from tests.process.documents import blocks, commands, indented, lines_of
from tests.process.session import Session


def run(folder: Path, script: str, **variables: str) -> str:
    played = subprocess.run(
        ["sh", "-eu"],
        input=script,
        cwd=folder,
        env=commands(folder) | variables,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert played.returncode == 0, played.stdout + played.stderr
    return played.stdout


def test_the_page_of_the_client(tmp_path: Path) -> None:
    page = (ROOT / "docs/client.md").read_text("utf-8")
    program = "\n".join(blocks(page, "python"))
    assert len(blocks(page, "python")) == 12
    _, setting_up, others = indented("docs/client.md", 3)
    # The other scripts spend of the same allowance. ``test_examples`` runs them.
    scripts = {f"examples/{file.name}" for file in (ROOT / "examples").glob("*.py")}
    assert {line.split()[1] for line in lines_of(others)} == scripts - {"examples/set_up.py"}
    [short] = blocks((ROOT / "client/README.md").read_text("utf-8"), "python")
    with ServiceProcess(tmp_path / "data", **QUICK) as service:
        program += '\nkey = os.environ["PRIVYPURSE_KEY"]\n'
        program += short.replace("https://purse.example", service.url)
        for written, here in (
            ("http://127.0.0.1:8000", service.url),
            ("data-of-examples", "data"),
            ("env/bin/python examples", f"python {ROOT}/examples"),
        ):
            assert written in setting_up
            setting_up = setting_up.replace(written, here)
        printed = run(tmp_path, f"{setting_up}\npython - <<'PYTHON'\n{program}PYTHON\n")
    for said in (
        "User(name='ada', roles=['analyst'], disabled=False) ['people', 'friends']",
        "ε = 0.5 ε = 19.5 ",
        "off by at most 20, as a rule; it cost ε = ",
        "'] [{'no': ",  # The predicted label before this text is random.
        "['Aix', 'Brest', 'Caen', 'Dijon'] [[0.",
        "people ε = 4.",
        "left: ε = 19.5 largest that fits: ε = 19.5",
    ):
        assert said in printed, printed
    assert printed.endswith("] ε = 19\n"), printed


def test_the_page_of_distances() -> None:
    [program] = blocks((ROOT / "docs/distances.md").read_text("utf-8"), "python")
    code: dict[str, Any] = {}
    exec(program, code)
    town = {"name": "town", "values": ["Aix", "Brest"], "vectors": [[0.0], [3.0]]}
    age = {"name": "age", "values": ["[0,50)", "[50,100]"], "vectors": [[0.0, 1.0], [1.0, 0.0]]}
    answer = {
        "encoding": {"attributes": [town, age]},
        "centres": [[0.0, 0.0, 1.0], [3.0, 1.0, 0.0]],
    }
    assert code["nearest"]({"town": "Aix", "age": "[0,50)"}, answer) == 0
    assert code["nearest"]({"town": "Brest", "age": "[0,50)"}, answer) == 1


def test_the_pages_of_the_command_line_and_of_statistics(tmp_path: Path) -> None:
    """The people of the first page are those of the second."""
    page = (ROOT / "docs/command_line.md").read_text("utf-8")
    assert len(blocks(page, "sh")) == 4
    [prefix] = blocks((ROOT / "docs/statistics.md").read_text("utf-8"), "sh")
    with ServiceProcess(tmp_path / "data", **QUICK) as service:
        printed = run(tmp_path, "".join(blocks(page, "sh")), PRIVYPURSE_URL=service.url)
        printed_next = run(tmp_path, prefix, PRIVYPURSE_URL=service.url)
    for said in (
        "ada\tanalyst\tenabled\n",
        "friends is ready, version 1\n",
        "ada on friends: ε = 2, remaining ε = 2\n",
        '"affordable": true',
        "friends\tada\tspent ε = 0.5, ρ = ",
        '"certificate": "privypurse answer 1"',
        "\nvalid\nbacked up to backup-of-today",
    ):
        assert said in printed, printed
    assert printed.count('"status": "answered"') == 2
    assert (tmp_path / "ada.key").stat().st_mode & 0o77 == 0
    assert (tmp_path / "ledger.csv").read_text("utf-8").startswith("at,kind,account,")
    assert (tmp_path / "backup-of-today").is_dir()
    assert "steps is ready, version 1\n" in printed_next
    answered = json.loads(printed_next[printed_next.index("{") :])
    assert answered["answer"]["noise_scale"] == pytest.approx(50)


def test_the_page_of_backups(tmp_path: Path) -> None:
    page = (ROOT / "docs/backup.md").read_text("utf-8")
    backup, restore, accept = blocks(page, "sh")
    service = ServiceProcess(tmp_path / "data", **QUICK)
    with service:
        session = Session.open(service)
        answer = session.query("before the backup")
        assert "starts frozen" in run(tmp_path, backup)
        assert session.query("after it").status_code == 201
    # The service has stopped, which published its latest heads. So the restored backup is behind
    # them.
    run(tmp_path, restore)
    with service:
        assert session.query("while frozen").json()["type"].endswith("/frozen")
        assert session.query("before the backup").content == answer.content
        assert session.spent() == "0.5"
        accepted = run(tmp_path, accept)
        assert accepted.endswith("\nvalid\n")
        assert "charged epsilon 0.5, delta 0 again" in accepted
        assert session.spent() == "1"
        assert session.query("when it goes on").status_code == 201
