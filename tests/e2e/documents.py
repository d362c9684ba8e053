"""The code of a document, and a shell in which it runs as a reader's would."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path

from tests.architecture.imports import ROOT


def blocks(text: str, language: str) -> list[str]:
    """The contents of all fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def commands(folder: Path) -> dict[str, str]:
    """Variables of a shell in ``folder`` that finds ``privypurse``, ``python`` and ``./run`` there.

    ``./run`` is what the real one starts once everything is set up; ``tests/architecture`` has
    the rest of it.
    """
    path = f"{ROOT}{os.pathsep}{ROOT / 'client'}"
    start = f"PYTHONPATH={shlex.quote(path)} exec {shlex.quote(sys.executable)}"
    (folder / "bin").mkdir(exist_ok=True)
    for file, line in (
        ("bin/privypurse", f'{start} -m app.cli "$@"'),
        ("bin/python", f'{start} "$@"'),
        ("run", f'PURSE_DATA="${{PURSE_DATA:-$PWD/data}}" {start} -m app.cli "$@"'),
    ):
        (folder / file).write_text(f"#!/bin/sh\n{line}\n", "utf-8")
        (folder / file).chmod(0o755)
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PURSE_", "PRIVYPURSE_", "PYTHON")) and name != "DATABASE_URL"
    }
    return clean | {"PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}
