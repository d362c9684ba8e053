"""Compare the OpenAPI document of this tree with that of an earlier commit.

    python scripts/openapi_diff.py REVISION

Descriptions, summaries, titles, operation ids and names of components may differ: clients do not
depend on them. Every other difference is printed, and the exit status is then 1.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
#: OpenAPI fields with text for people, which are not compared. A property or a parameter of the
#: same name is compared.
TEXTS = frozenset({"description", "summary", "title", "operationId"})
#: OpenAPI fields whose keys are names that the service chose, such as names of properties, and not
#: words of OpenAPI.
NAMED = frozenset({"properties", "paths", "responses", "schemas", "content", "examples", "default"})
#: The program that prints the OpenAPI document of a checkout, and that runs in it. Older checkouts
#: have their settings in another module.
DUMP = """
import json, sys, tempfile
from pathlib import Path
try:
    from app.config.settings import Settings
except ImportError:
    from app.settings import Settings
from app.main import create_app
json.dump(create_app(Settings(data=Path(tempfile.mkdtemp()))).openapi(), sys.stdout)
"""


def document(tree: Path) -> dict[str, Any]:
    """The OpenAPI document of the service in ``tree``."""
    environment = {**os.environ, "PYTHONPATH": f"{tree}{os.pathsep}{tree / 'client'}"}
    done = subprocess.run(
        [sys.executable, "-c", DUMP], cwd=tree, env=environment, check=True, capture_output=True
    )
    contents: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return contents


def document_of(commit: str) -> dict[str, Any]:
    """The OpenAPI document of the service in a commit."""
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "tree.tar"
        command = ["git", "archive", "--output", str(archive), commit]
        subprocess.run(command, cwd=ROOT, check=True)
        tree = Path(folder) / "tree"
        tree.mkdir()
        subprocess.run(["tar", "-xf", str(archive), "-C", str(tree)], check=True)
        return document(tree)


def comparable(api: Mapping[str, Any]) -> Any:
    """The document without its texts, with every component written out where it is used."""
    components = api.get("components", {})

    def plain(value: Any, inside: tuple[str, ...], names: bool) -> Any:
        if isinstance(value, list):
            return [plain(one, inside, False) for one in value]
        if not isinstance(value, dict):
            return value
        if set(value) == {"propertyName", "mapping"}:
            # A discriminator maps tags to components. Clients depend on the tags, and not on the
            # names of the components.
            return {"propertyName": value["propertyName"], "tags": sorted(value["mapping"])}
        reference = value.get("$ref")
        if isinstance(reference, str):
            _, _, kind, name = reference.split("/")
            if name in inside:
                # A component that contains itself cannot be written out. It is represented by the
                # number of levels up to itself, because its name may differ.
                return {"recursion": len(inside) - inside.index(name)}
            return plain(components[kind][name], (*inside, name), False)
        return {
            key: plain(one, inside, key in NAMED)
            for key, one in value.items()
            if names or key not in TEXTS
            # The list of schemas is skipped, because each schema is compared where it is used.
            if key != "schemas" or names
        }

    return plain(api, (), False)


def differences(before: Any, after: Any, place: str = "") -> Iterator[str]:
    """Where two comparable documents differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(before.keys() | after.keys()):
            here = f"{place}/{key}"
            if key not in before:
                yield f"{here}: new"
            elif key not in after:
                yield f"{here}: gone"
            else:
                yield from differences(before[key], after[key], here)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from differences(one, other, f"{place}/{number}")
    elif before != after:
        yield f"{place}: {json.dumps(before)[:200]} → {json.dumps(after)[:200]}"


def main(commit: str) -> int:
    """Print the differences from ``commit``; 1 when there are any."""
    before, after = document_of(commit), document(ROOT)
    different = list(differences(comparable(before), comparable(after)))
    sys.stdout.writelines(f"{line}\n" for line in different)
    paths = len(after["paths"])
    sys.stdout.write(f"{paths} paths compared with {commit}: {len(different)} differences\n")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
