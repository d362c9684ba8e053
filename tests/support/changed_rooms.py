"""Names the unit tests that a change concerns: ``./run test --quick`` runs them.

These are the tests of the changed rooms, those of the rooms that import them directly, and the
changed tests themselves. The whole suite still has to pass before a change lands.

    python -m tests.support.changed_rooms tests     the folders and files to hand to pytest
    python -m tests.support.changed_rooms sources   the changed Python files, for lint and types
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.architecture.imports import ROOT
from tests.architecture.rooms import all_arrows, module_of, room_of

PACKAGES = ("accounting", "mechanisms", "storage", "app")
#: The folder of tests for each folder of code that is not one of the four packages.
BESIDE = {"client": "tests/unit/client", "benchmarks": "tests/unit/benchmarks"}


def changed_files() -> list[Path]:
    """What differs from the last commit; what that commit changed where nothing differs."""

    def lines(*command: str) -> list[str]:
        run = subprocess.run(
            ["git", *command], cwd=ROOT, capture_output=True, text=True, check=True
        )
        return run.stdout.splitlines()

    names = lines("diff", "--name-only", "HEAD")
    names += lines("ls-files", "--others", "--exclude-standard")
    names = names or lines("diff", "--name-only", "HEAD~1", "HEAD")
    return [Path(name) for name in sorted(set(names)) if (ROOT / name).is_file()]


def importers(rooms: Iterable[str]) -> set[str]:
    """The rooms that import one of ``rooms`` directly."""
    targets = set(rooms)
    return {arrow.room for arrow in all_arrows() if arrow.target in targets}


def unit_tests_for(files: Iterable[Path]) -> list[str]:
    """The folders and files of tests that a change of ``files`` concerns, outermost only."""
    rooms: set[str] = set()
    tests: set[str] = set()
    for path in files:
        top = path.parts[0]
        if path.suffix == ".py" and top in PACKAGES:
            rooms.add(room_of(module_of(path)))
        elif top in PACKAGES and len(path.parts) > 2:
            # This is a template or a style sheet, and belongs to the folder of the package that it
            # lies in.
            rooms.add(".".join(path.parts[:2]))
        elif top in BESIDE:
            tests.add(BESIDE[top])
        elif path.name.startswith("test_") and path.suffix == ".py":
            tests.add(path.as_posix())
    for room in rooms | importers(rooms):
        folder = f"tests/unit/{room.replace('.', '/')}"
        if (ROOT / folder).is_dir():
            tests.add(folder)
    return sorted(one for one in tests if not any(one.startswith(f"{other}/") for other in tests))


def main(what: str) -> None:
    files = changed_files()
    names = (
        unit_tests_for(files) if what == "tests" else [str(f) for f in files if f.suffix == ".py"]
    )
    sys.stdout.write("".join(f"{name}\n" for name in names))


if __name__ == "__main__":
    main(sys.argv[1])
