"""The rooms of the packages, and which room may import which.

A room is a folder of a package. Imports point one way between packages and between rooms; lazy,
conditional and dynamic imports count like all others. ``accounting`` and ``storage.errors`` are
open to every room that stands left of them. docs/dev/architecture.md draws this table.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.architecture.imports import ROOT, imported

#: The rooms (subpackages) of ``mechanisms`` from the lowest up, each with the rooms that it may
#: import.
MECHANISMS = {
    "model": "",
    "kernels": "model",
    "noise": "kernels model",
    "utilities": "kernels model",
    "objectives": "utilities kernels model",
    "selection": "objectives utilities noise kernels model",
    "statistics": "noise kernels model",
    "tables": "statistics noise kernels model",
    "trees": "tables statistics selection objectives utilities noise kernels model",
    "distances": "selection utilities noise kernels model",
    "clustering": "distances utilities noise kernels model",
}
#: The rooms (subpackages) of ``storage``, each with the rooms that it may import. Rooms of
#: ``mechanisms`` have the prefix ``mechanisms.``.
STORAGE = {
    "errors": "",
    "database": "",
    "migrations": "database",
    "files": "",
    "journal": "database",
    "people": "journal database",
    "ledger": "journal database",
    "ingest": "files mechanisms.model mechanisms.kernels",
    "sources": "ingest files",
    "records": "sources ingest files mechanisms.model mechanisms.kernels",
    "catalogue": "ledger people journal records files database mechanisms.model",
    "queries": "catalogue ledger people journal database",
    "assurance": "queries catalogue ledger people journal records files database",
    "s3": "records files",
    "cluster": "files mechanisms.model mechanisms.kernels",
}
#: The rooms of ``storage`` that the engine and the use cases may import: all but the optional ones
#: and the migrations.
STORES = " ".join(
    f"storage.{room}" for room in STORAGE if room not in ("s3", "cluster", "migrations")
)
#: The rooms (subpackages) that a door may import. Doors such as ``routes`` and ``dashboard`` only
#: translate between the outside and use cases.
DOOR = "http usecases queries contract config"
APP = {
    "config": "",
    "contract": "config mechanisms.model",
    "telemetry": "",
    "queries": "contract " + " ".join(f"mechanisms.{room}" for room in MECHANISMS),
    "engine": f"queries contract config telemetry {STORES} mechanisms.model mechanisms.noise",
    "identity": "config storage.people",
    "usecases": f"engine identity queries contract config telemetry {STORES}",
    "http": "usecases identity contract config telemetry",
    "routes": DOOR,
    "dashboard": DOOR,
    "mcp": DOOR,
    "cluster": "config storage.cluster storage.files mechanisms.model",
    "demo": "",
    # At the start ``service`` creates the random source and the executor, and it prepares made-up
    # records to warm up. So it may import ``mechanisms``.
    "service": f"config contract telemetry queries engine identity usecases http {STORES} "
    "mechanisms.model mechanisms.noise mechanisms.kernels",
    "main": "service http routes dashboard mcp usecases telemetry config",
    # ``check`` and everything that it imports are also in the wheel of the client.
    "check": "usecases",
    "cli": "main demo service usecases contract config",
}


def _table() -> dict[str, frozenset[str]]:
    table = {"accounting": frozenset({"accounting"})}
    for package, rooms in (("mechanisms", MECHANISMS), ("storage", STORAGE), ("app", APP)):
        for room, others in rooms.items():
            name = f"{package}.{room}"
            named = (one if "." in one else f"{package}.{one}" for one in others.split())
            public = {"accounting"} if package == "mechanisms" else {"accounting", "storage.errors"}
            table[name] = frozenset({name, *named, *public})
    return table


#: Maps each room (subpackage) to the rooms that it may import, itself included.
TABLE = _table()


@dataclass(frozen=True, order=True)
class Arrow:
    """One import from one room into another."""

    path: str
    room: str
    target: str

    @property
    def allowed(self) -> bool:
        return self.target in TABLE.get(self.room, frozenset())


def room_of(module: str) -> str:
    """The room of a dotted name: ``storage.ledger.replay`` is in ``storage.ledger``."""
    parts = module.split(".")
    return parts[0] if parts[0] == "accounting" else ".".join(parts[:2])


def module_of(path: Path) -> str:
    """The dotted name of the module in a file, relative to the root."""
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def sources() -> list[Path]:
    """Every module of the four packages, relative to the root."""
    packages = ("accounting", "mechanisms", "storage", "app")
    paths = (path for package in packages for path in (ROOT / package).rglob("*.py"))
    return sorted(path.relative_to(ROOT) for path in paths)


def arrows(path: Path, source: str) -> Iterator[Arrow]:
    """The imports of one file that leave its room."""
    module = module_of(path)
    room = room_of(module)
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for name, _ in imported(ast.parse(source), package):
        if name.partition(".")[0] not in ("accounting", "mechanisms", "storage", "app"):
            continue
        target = room_of(name)
        # Every room may do ``from app import __version__``: ``app/__init__.py`` has nothing but the
        # version.
        if target != room and target != "app.__version__":
            yield Arrow(path.as_posix(), room, target)


@cache
def all_arrows() -> frozenset[Arrow]:
    """The imports of all files that leave their rooms."""
    return frozenset(
        arrow for path in sources() for arrow in arrows(path, (ROOT / path).read_text("utf-8"))
    )


def dynamic(source: str) -> list[int]:
    """Lines that import a module whose name is not written there."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            function = ast.unparse(node.func)
            if function.endswith("import_module") or function == "__import__":
                name = node.args[0] if node.args else None
                if not (isinstance(name, ast.Constant) and isinstance(name.value, str)):
                    lines.append(node.lineno)
    return lines


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The groups of nodes that reach one another, by Tarjan's algorithm."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            group = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(group) > 1:
                groups.append(sorted(group))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return groups
