"""Checks a file by the rules of the service, which run in a process of their own.

The service's modules are not part of this library and are not imported: the wheel carries those
that hold the rules in its folder ``rules``, and a checkout has them at its root.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from privypurse.uploads.upload import media_type_of
from privypurse.workshop.table_files import as_upload

#: The packages that the rules for uploads need.
NEEDED = ("numpy", "pyarrow", "pydantic")


@dataclass(frozen=True)
class Refusal:
    """The reasons for which a service would refuse a description, or else the records."""

    description: list[str]
    records: list[str]

    def __bool__(self) -> bool:
        return bool(self.description or self.records)


def check(
    source: str,
    description: Path,
    *,
    table: str | None = None,
    media_type: str | None = None,
    nodes: Path | None = None,
) -> Refusal:
    """Hold a file, or a table of a database, against a description; nothing is sent.

    Raises: OSError, ValueError; ImportError without a package that the rules need.
    """
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        raise ImportError(f"this needs {', '.join(missing)}: pip install {' '.join(missing)}")
    for file in (description, *([] if nodes is None else [nodes])):
        file.open("rb").close()
    with as_upload(source, table) as file:
        kind, is_gzip = media_type_of(file, media_type)
        arguments = [file, "--description", description, "--media-type", kind]
        arguments += ["--gzip"] if is_gzip else []
        arguments += [] if nodes is None else ["--nodes", nodes]
        run = subprocess.run(
            [sys.executable, "-m", "app.check", *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": str(rules()), "PYTHONSAFEPATH": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
    if run.returncode:
        raise ValueError(f"the check failed: {run.stderr.strip().splitlines()[-1:]}")
    return Refusal(**json.loads(run.stdout))


def rules() -> Path:
    """The folder with the packages of the service. Raises: FileNotFoundError."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "rules", package.parents[1]):
        if (folder / "app/check.py").is_file():
            return folder
    raise FileNotFoundError(2, "the rules of uploads are missing; install the wheel again", package)
