"""Every command of every page is run or checked by a test.

The tests in ``PLAYED`` run the blocks of ``sh`` and Python from top to bottom. Each other line of
code must pass one of the checks below, options included, or be listed in ``NOT_TYPED`` with the
reason.
"""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import shlex
import sys
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml
from hypothesis import settings
from typer import Typer
from typer.testing import CliRunner

from app.cli import cli as service_cli
from app.config.settings import Settings
from benchmarks.registry import BENCHES
from privypurse.cli import cli as client_cli
from tests.architecture.imports import ROOT
from tests.process.documents import code_of, lines_of, pages, sent_by_run

#: Maps each page to the test that runs its blocks of ``sh`` and Python.
PLAYED = {
    "README.md": "tests/process/test_readme.py",
    "client/README.md": "tests/process/test_documents.py",
    "docs/backup.md": "tests/process/test_documents.py",
    "docs/client.md": "tests/process/test_documents.py",
    "docs/command_line.md": "tests/process/test_documents.py",
    "docs/distances.md": "tests/process/test_documents.py",
    "docs/sources.md": "tests/process/test_postgresql_documents.py",
    "docs/statistics.md": "tests/process/test_documents.py",
    "docs/trees.md": "tests/unit/app/queries/test_trees_document.py",
    "docs/tutorial_analyst.md": "tests/process/test_tutorials.py",
    "docs/tutorial_auditor.md": "tests/process/test_tutorials.py",
    "docs/tutorial_operator.md": "tests/process/test_tutorials.py",
    "docs/tutorial_owner.md": "tests/process/test_tutorials.py",
}
#: The pages whose ``json`` is validated as queries or attributes by
#: tests/architecture/test_documents.py.
VALIDATED = {
    f"docs/{page}.md"
    for page in ("datasets", "distances", "mechanisms", "statistics", "tables", "trees")
}
#: Maps the beginning of each code block that contains no commands to what the block shows.
NOT_TYPED = {
    "app → storage → mechanisms → accounting": "what imports what",
    "DIR/privypurse.db": "what is in the data folder",
    "P(answer on x ∈ S)": "a formula",
    "the database has schema 0099": "what the service says",
    '{"type":"budget_low"': "a message of the webhook",
    '{"mcpServers"': "an entry in the file of an agent",
    "sex = f: yes": "a tree as text",
}
#: The test that runs all container commands of the pages. This file checks them without an engine.
CONTAINERS = "tests/process/test_containers.py"
# These statements are run by tests/process/test_postgresql_documents.py.
SQL = ("CREATE ROLE", "REVOKE CREATE")
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
#: For each command of ``docker compose`` in the pages: its options that take no value.
COMPOSE_OPTIONS = {
    "build": set(),
    "exec": set(),
    "stop": set(),
    "up": {"--build", "--detach", "--no-deps", "--renew-anon-volumes", "--wait"},
}
PAGES = [str(path.relative_to(ROOT)) for path in pages()]


def privypurse(arguments: list[str]) -> None:
    """Checks that the client has the command and its options; prose may omit values."""
    accepted_by(client_cli, arguments)


def accepted_by(cli: Typer, arguments: list[str]) -> None:
    result = CliRunner().invoke(cli, [*arguments, "--help"])
    assert result.exit_code == 0, result.output


def run(arguments: list[str]) -> None:
    """Checks a command of ``./run``: its own, or one of the client or the service."""
    if not arguments:
        return
    command, *rest = arguments
    if command == "test":
        for one in rest:
            option, _, value = one.partition("=")
            if option == "--hypothesis-profile":
                settings.get_profile(value)
            else:
                assert one in ("--slow", "--quick") or (ROOT / one).exists(), one
    elif command == "reproduce":
        python(["-m", "benchmarks.reproduction", *rest])
    elif command == "bench":
        names = [one for one in rest if not one.startswith("-") and one.islower()]
        for name in names:
            assert any(f"{bench.name}.".startswith(f"{name}.") for bench in BENCHES), name
        python(["-m", "benchmarks", *(one for one in rest if one not in names)])
    elif any(fnmatch(command, pattern) for pattern in sent_by_run()):
        privypurse(arguments)
    elif command not in ("help", "demo"):
        accepted_by(service_cli, arguments)


def docker(arguments: list[str]) -> None:
    """Checks profiles, services, commands and options; ``CONTAINERS`` runs them with an engine."""
    assert arguments.pop(0) == "compose"
    profiles = {
        one for service in COMPOSE["services"].values() for one in service.get("profiles", ())
    }
    while arguments[0] == "--profile":
        assert arguments[1] in profiles
        del arguments[:2]
    command, *rest = arguments
    options = [one for one in rest if one.startswith("--")]
    if command == "exec":
        service, *inside = rest
        assert service in COMPOSE["services"]
        if inside[0] == "cat":
            file = Settings(data=Path("/data")).bootstrap_key_file
            assert inside[1:] == [str(file)]
        else:
            python(inside[1:])
        return
    assert set(options) <= COMPOSE_OPTIONS[command]
    assert set(rest) - set(options) <= set(COMPOSE["services"])


def python(arguments: list[str]) -> None:
    """Checks that a module lists these options, or that a file exists."""
    if arguments[0] != "-m":
        assert (ROOT / arguments[0]).is_file()
        return
    module, *rest = arguments[1:]
    if module in ("app.cli", "privypurse.cli"):
        accepted_by(service_cli if module == "app.cli" else client_cli, rest)
        return
    options = {one.strip("[]") for one in rest if one.startswith(("-", "[-"))}
    assert options <= options_of(module), (module, rest)


def options_of(module: str) -> set[str]:
    """The options that ``python -m module --help`` lists."""
    output, before = io.StringIO(), sys.argv
    sys.argv = [module, "--help"]
    try:
        with contextlib.redirect_stdout(output), pytest.raises(SystemExit) as ended:
            runpy.run_module(module, run_name="__main__")
    finally:
        sys.argv = before
    assert ended.value.code == 0
    return set(re.findall(r"--?[a-z][a-z-]*", output.getvalue()))


def file(arguments: list[str]) -> None:
    [path] = arguments
    assert (ROOT / path).stat().st_mode & 0o111


def pip(arguments: list[str]) -> None:
    assert arguments.pop(0) == "install"
    options = ("--no-deps", "--require-hashes", "-r")
    what = [one.partition("[")[0] for one in arguments if one not in options]
    assert all(
        (ROOT / one).suffix == ".lock" or (ROOT / one / "pyproject.toml").is_file() for one in what
    )
    assert all((ROOT / one).exists() for one in what)


def setting(name: str) -> None:
    """Checks that some program reads the variable."""
    if name.startswith("PURSE_") and name != "PURSE_SCREENSHOTS":
        assert name.removeprefix("PURSE_").lower() in Settings.model_fields, name
        return
    readers = {
        "PRIVYPURSE_KEY": "client/privypurse/cli/service.py",
        "PRIVYPURSE_URL": "client/privypurse/cli/service.py",
        "PURSE_SCREENSHOTS": "tests/process/test_browser.py",
        "DATABASE_URL": "app/config/settings.py",
        "METRICS_TOKEN_FILE": "docker-compose.yml",
    }
    assert name in (ROOT / readers[name]).read_text("utf-8")


def elsewhere(test: str) -> Callable[[list[str]], None]:
    """Checks only that ``test``, the file of the test that runs the line of the page, exists."""

    def check(_: list[str]) -> None:
        assert (ROOT / test).is_file()

    return check


def nothing(_: list[str]) -> None:
    """Checks nothing: the line calls a program and a server that are not part of this project."""


CHECKS: dict[str, Callable[[list[str]], None]] = {
    "privypurse": privypurse,
    "env/bin/privypurse": privypurse,
    "./run": run,
    "docker": docker,
    "python": python,
    ".venv/bin/python": python,
    "env/bin/python": python,
    "python3": python,
    "pip": pip,
    "env/bin/pip": pip,
    ".venv/bin/pip": pip,
    "uv": elsewhere("tests/process/test_locking.py"),
    "pg_dump": elsewhere("tests/process/test_postgresql_documents.py"),
    "createdb": elsewhere("tests/process/test_postgresql_documents.py"),
    "cp": elsewhere("tests/process/test_postgresql_documents.py"),
    "git": nothing,
}


def check(line: str) -> None:
    """Check that one line of a page names programs, options, settings and files that exist.

    Raises: AssertionError and others if it does not, and KeyError for a program without a check.
    """
    if inside := re.fullmatch(r'eval "\$\((.+)\)"', line):
        check(inside[1])
        return
    if " && " in line and not line.startswith("createdb"):
        for part in line.split(" && "):
            check(part)
        return
    if alone := re.fullmatch(r"([A-Z_]+)=(\{.*\}|\S+)", line):
        setting(alone[1])
        return
    words = shlex.split(line.replace("…", "x"), comments=True)
    if words[0] == "export":
        words.pop(0)
    while words and re.match(r"[A-Z_]+=", words[0]):
        setting(words.pop(0).partition("=")[0])
    if words and words[0].startswith(("deploy/", "scripts/")):
        file(words)
    elif words:
        CHECKS[words[0]](words[1:])


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_a_page_is_known_to_a_test(page: str) -> None:
    for code in code_of((ROOT / page).read_text("utf-8")):
        if code.form in ("sh", "python"):
            test = (ROOT / PLAYED[page]).read_text("utf-8")
            assert page in test or "docs/tutorial_{role}.md" in test
        elif code.form == "json":
            assert page in VALIDATED
        elif code.form == "text" and page in PLAYED:
            assert "assert_shown(" in (ROOT / PLAYED[page]).read_text("utf-8")
        elif code.form != "inline" and not code.text.startswith(tuple(NOT_TYPED)):
            if "docker" in code.text:
                assert page in (ROOT / CONTAINERS).read_text("utf-8")
            for line in lines_of(code.text):
                if not line.startswith(SQL):
                    check(line)


#: Maps patterns of commands in sentences to the beginning of the command, which the sentence leaves
#: out.
IN_PROSE = {
    r"(\./run|privypurse|(\.venv/bin/)?python|docker|pip|uv|scripts/\S+|deploy/\S+\.sh)( .*)?": "",
    r"(users|datasets|requests) [a-z-]+( .*)?": "privypurse ",
}


@pytest.mark.parametrize("page", PAGES)
def test_every_command_in_a_sentence_is_one(page: str) -> None:
    for code in code_of((ROOT / page).read_text("utf-8")):
        for form, before in IN_PROSE.items():
            if code.form == "inline" and re.fullmatch(form, code.text):
                if code.text.startswith("docker"):
                    assert page in (ROOT / CONTAINERS).read_text("utf-8")
                check(before + code.text)


@pytest.mark.parametrize(
    "wrong",
    [
        "make install",
        "./run upgrade",
        "./run --uri http://127.0.0.1:8000 budgets",
        "./run verify --head F",
        "./run test tests/nowhere.py",
        "privypurse users rename NAME",
        "./run backup DEST --compress",
        "./run users rename NAME",
        "privypurse backup DEST",
        "python -m app.cli users list",
        "docker run privypurse",
        "docker compose --profile large up",
        "docker compose up --remove",
        "docker compose up replica-three",
        "docker compose exec privypurse cat /data/admin.key",
        "./run bench http --date DIR",
        "./run bench nothing",
        "python -m benchmarks.nothing",
        "pip install ./clients",
        "python3 -m venv env && env/bin/pip install ./clients",
        'eval "$(env/bin/python examples/setup.py)"',
        "deploy/make_keys.sh",
        "PURSE_PORTS=1 ./run",
    ],
)
def test_what_does_not_work_is_found(wrong: str) -> None:
    with pytest.raises((AssertionError, KeyError, OSError, ImportError)):
        check(wrong)
