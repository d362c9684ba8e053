"""The project speaks of itself only: no machine's paths, no package index, no forgotten ends."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.architecture.imports import ROOT
from tests.process.documents import code_of, pages

MACHINE_PATH = re.compile(r"(?<![\w.~-])/(?:home/\w|root/|Users/\w|work/|mnt/\w|private/\w)")
INDEX = re.compile(r"--(?:extra-)?index-url|--find-links|/simple/")
#: Files that are not checked: this file must name what it forbids, and vendored scripts are other
#: people's text.
EXEMPT = ("tests/architecture/test_project_files.py", "app/http/static/")


def project_files() -> list[Path]:
    """Every tracked file, relative to the root."""
    if not shutil.which("git"):
        pytest.skip("needs git, for the list of the project's files")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a git checkout: no list of the project's files")
    return [Path(name) for name in listed.stdout.split("\0") if name]


def texts() -> list[tuple[Path, str]]:
    files = []
    for path in project_files():
        if (ROOT / path).is_file() and not path.as_posix().startswith(EXEMPT):
            try:
                files.append((path, (ROOT / path).read_text("utf-8")))
            except UnicodeDecodeError:
                continue
    return files


def test_no_file_names_a_path_of_one_machine_or_a_package_index() -> None:
    bad = [
        f"{path}:{number}: {line.strip()[:100]}"
        for path, text in texts()
        for number, line in enumerate(text.splitlines(), 1)
        if MACHINE_PATH.search(line) or INDEX.search(line)
    ]
    assert bad == []


@pytest.mark.parametrize("line", ["x = '/home/ada/x'", "see /work/data", "open('/root/.ssh')"])
def test_the_pattern_finds_machine_paths(line: str) -> None:
    assert MACHINE_PATH.search(line)


@pytest.mark.parametrize("line", ["/opt/venv/bin", "/v1/homework/1", "docs/work/x", "/data"])
def test_the_pattern_leaves_other_paths_alone(line: str) -> None:
    assert not MACHINE_PATH.search(line)


def test_nothing_is_left_unfinished_in_code() -> None:
    marks = re.compile(r"\b(?:TODO|FIXME|XXX|NotImplementedError)\b")
    bad = [str(path) for path, text in texts() if path.suffix == ".py" and marks.search(text)]
    assert bad == []


def test_every_relative_link_in_a_document_leads_somewhere() -> None:
    bad = [
        f"{path}: {target}"
        for path, text in texts()
        if path.suffix == ".md"
        for target in re.findall(r"\]\((?![a-z]+:)([^)#\s]+)", text)
        if not (ROOT / path.parent / target).exists()
    ]
    assert bad == []


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE"])
def test_the_usual_documents_are_there(name: str) -> None:
    assert (ROOT / name).stat().st_size > 500


#: Matches the name of a file or folder that a command of the documents creates in the current
#: folder.
MADE = re.compile(
    r"(?:[^-]> |--output |--file=|backup |mkdir -p |-m venv |certificates |mv data "
    r"|(?<!\.)open\(\")([a-z][\w.-]*)(?![\w/-])"
)


def test_what_the_documents_make_in_a_checkout_is_ignored() -> None:
    """Commands of the documents write records and keys into a checkout; git must not add them."""
    if not shutil.which("git"):
        pytest.skip("needs git, to ask what it ignores")
    text = [code.text for page in pages() for code in code_of(page.read_text("utf-8"))]
    text += [path.read_text("utf-8") for path in (ROOT / "examples").glob("*.py")]
    outputs = {name for one in text for name in MADE.findall(one)}
    assert {"ada.key", "friends.csv", "query.json", "tree.svg", "backup-of-today"} <= outputs
    names = sorted(outputs | {"data/privypurse.db", "data-of-examples", "secrets/x"})
    result = subprocess.run(
        ["git", "check-ignore", "--no-index", "--stdin"],
        cwd=ROOT,
        input="\n".join(names),
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode == 128:
        pytest.skip("not a git checkout: nothing is ignored")
    assert result.stdout.splitlines() == names
