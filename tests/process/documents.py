"""The code of a document, and a shell that runs it as a reader would."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.architecture.imports import ROOT

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?<=\n\n)((?: {4}.*\n)+)")
INLINE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Code:
    """One piece of code of a page; ``form`` is ``indented``, ``inline`` or a language."""

    form: str
    text: str


def pages() -> list[Path]:
    """All pages with commands for readers."""
    single = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "client/README.md"]
    return [*single, *sorted((ROOT / "docs").glob("*.md"))]


def code_of(text: str) -> Iterator[Code]:
    """All code of a page, grouped by form."""
    for fence in FENCE.finditer(text):
        yield Code(fence[1], fence[2])
    prose = FENCE.sub("", text)
    for block in INDENTED.finditer(prose):
        yield Code("indented", re.sub(r"^ {4}", "", block[1], flags=re.MULTILINE))
    for span in INLINE.finditer(INDENTED.sub("", prose)):
        yield Code("inline", " ".join(span[1].split()))


def lines_of(block: str) -> list[str]:
    """The commands of a block, each on one line and without the remark beside it."""
    whole = re.sub(r"\\\n\s*", "", block).splitlines()
    return [re.sub(r"\s{2,}.*", "", line).strip() for line in whole if line.strip()]


def indented(page: str, count: int) -> list[str]:
    """The indented blocks of a page; fails unless there are ``count``, so that none is missed."""
    sections = [
        one.text for one in code_of((ROOT / page).read_text("utf-8")) if one.form == "indented"
    ]
    assert len(sections) == count, sections
    return sections


def blocks(text: str, language: str) -> list[str]:
    """The contents of all fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def assert_shown(page: str, printed: str) -> None:
    """Checks that the lines ``printed`` by the commands of a page contain its examples, in order.

    Examples are the blocks of ``text``. In them … stands for any text, and a number for any other.
    """
    examples = blocks((ROOT / page).read_text("utf-8"), "text")
    assert examples
    for example in examples:
        pattern = re.sub(r"\d+", r"\\d+", re.escape(example)).replace("…", r"[\s\S]*?")
        place = re.search(pattern, printed)
        assert place, f"{page} shows\n{example}\nin place of\n{printed}"
        printed = printed[place.end() :]


def sent_by_run() -> list[str]:
    """The shell patterns of the commands that ``./run`` passes on to the client."""
    [patterns] = re.findall(r"^  (.+)\) client ", (ROOT / "run").read_text("utf-8"), re.MULTILINE)
    return str(patterns).split(" | ")


def commands(folder: Path) -> dict[str, str]:
    """Variables of a shell in ``folder`` that finds ``privypurse``, ``python`` and ``./run`` there.

    ``./run`` stands for what the real script starts after its setup; ``tests/architecture`` tests
    the setup itself.
    """
    path = f"{ROOT}{os.pathsep}{ROOT / 'client'}"
    start = f"PYTHONPATH={shlex.quote(path)} exec {shlex.quote(sys.executable)}"
    client = (
        f'case "${{1:-}}" in {" | ".join(sent_by_run())}) {start} -m privypurse.cli "$@" ;; esac'
    )
    service = f'PURSE_DATA="${{PURSE_DATA:-$PWD/data}}" {start} -m app.cli "${{@:-serve}}"'
    (folder / "bin").mkdir(exist_ok=True)
    for file, line in (
        ("bin/privypurse", f'{start} -m privypurse.cli "$@"'),
        ("bin/python", f'{start} "$@"'),
        ("run", f"{client}\n{service}"),
    ):
        (folder / file).write_text(f"#!/bin/sh\n{line}\n", "utf-8")
        (folder / file).chmod(0o755)
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PURSE_", "PRIVYPURSE_", "PYTHON")) and name != "DATABASE_URL"
    }
    return clean | {"PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}
