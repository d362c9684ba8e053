"""The code of a document, and a shell in which it runs as a reader's would."""

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
    """Something that a page sets as code; ``form`` is ``indented``, ``inline`` or a language."""

    form: str
    text: str


def pages() -> list[Path]:
    """Everything that tells readers what to type."""
    single = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "client/README.md"]
    return [*single, *sorted((ROOT / "docs").glob("*.md"))]


def code_of(text: str) -> Iterator[Code]:
    """All code of a page, in the order of its forms."""
    for fence in FENCE.finditer(text):
        yield Code(fence[1], fence[2])
    prose = FENCE.sub("", text)
    for block in INDENTED.finditer(prose):
        yield Code("indented", re.sub(r"^ {4}", "", block[1], flags=re.MULTILINE))
    for span in INLINE.finditer(INDENTED.sub("", prose)):
        yield Code("inline", " ".join(span[1].split()))


def lines_of(block: str) -> list[str]:
    """The commands of a block, each in one line and without what is said beside it."""
    whole = re.sub(r"\\\n\s*", "", block).splitlines()
    return [re.sub(r"\s{2,}.*", "", line).strip() for line in whole if line.strip()]


def indented(page: str, count: int) -> list[str]:
    """The indented blocks of a page: so many, lest a test overlook one."""
    found = [
        one.text for one in code_of((ROOT / page).read_text("utf-8")) if one.form == "indented"
    ]
    assert len(found) == count, found
    return found


def blocks(text: str, language: str) -> list[str]:
    """The contents of all fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def sent_by_run() -> list[str]:
    """The patterns of the first words that ``./run`` leaves to the client."""
    [patterns] = re.findall(r"^  (.+)\) client ", (ROOT / "run").read_text("utf-8"), re.MULTILINE)
    return str(patterns).split(" | ")


def commands(folder: Path) -> dict[str, str]:
    """Variables of a shell in ``folder`` that finds ``privypurse``, ``python`` and ``./run`` there.

    ``./run`` is what the real one starts once everything is set up; ``tests/architecture`` has
    the rest of it.
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
