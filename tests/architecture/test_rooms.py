"""Rooms import one way: every arrow is in the table, and nothing imports in a circle."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

from tests.architecture.drawing import pictures, within
from tests.architecture.imports import ROOT, imported
from tests.architecture.rooms import (
    TABLE,
    all_arrows,
    arrows,
    cycles,
    dynamic,
    module_of,
    room_of,
    sources,
)

#: Files that may import modules by a computed name, from a setting or from a folder.
LOADERS = frozenset({"app/queries/__init__.py", "app/service/wings.py"})


def test_every_module_is_in_a_room_of_the_table() -> None:
    rooms = {room_of(module_of(path)) for path in sources()}
    assert rooms - {"app", "storage", "mechanisms"} == set(TABLE)


def test_every_arrow_is_in_the_table() -> None:
    assert {(arrow.path, arrow.target) for arrow in all_arrows() if not arrow.allowed} == set()


def test_rooms_form_no_cycle() -> None:
    graph: dict[str, set[str]] = defaultdict(set)
    for arrow in all_arrows():
        graph[arrow.room].add(arrow.target)
    assert cycles(graph) == []


def test_files_form_no_cycle() -> None:
    modules = {module_of(path): path for path in sources()}
    graph: dict[str, set[str]] = {}
    for module, path in modules.items():
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        tree = ast.parse((ROOT / path).read_text("utf-8"))
        names = {name for name, _ in imported(tree, package)}
        targets = {name if name in modules else name.rpartition(".")[0] for name in names}
        graph[module] = {target for target in targets if target in modules} - {module}
    assert cycles(graph) == []


def test_modules_are_named_where_they_are_imported() -> None:
    loaders = {path.as_posix() for path in sources() if dynamic((ROOT / path).read_text("utf-8"))}
    assert loaders <= LOADERS


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("mechanisms/noise/a.py", "from mechanisms.selection.top_k import select_top"),
        ("mechanisms/noise/a.py", "def f():\n    from mechanisms.utilities import UTILITIES"),
        ("mechanisms/model/a.py", "from .. import kernels"),
        (
            "storage/database/a.py",
            "import importlib\nimportlib.import_module('storage.ledger.batch')",
        ),
        ("storage/people/a.py", "if False:\n    from storage.ledger import ledger"),
        ("storage/ledger/a.py", "from mechanisms.model.domains import Domain"),
        ("app/routes/a.py", "from app.engine.answering import Answering"),
        ("app/routes/a.py", "from storage.ledger.ledger import Ledger"),
        ("app/dashboard/a.py", "from app.routes.budgets import show_budgets"),
        ("app/contract/a.py", "from mechanisms.noise.race import race"),
        ("accounting/a.py", "from mechanisms.model import domains"),
    ],
)
def test_a_breach_is_seen(path: str, source: str) -> None:
    assert not all(arrow.allowed for arrow in arrows(Path(path), source))


def test_a_name_that_is_computed_is_seen() -> None:
    assert dynamic("import importlib\nimportlib.import_module(f'app.{name}')") == [2]


def test_a_cycle_is_seen() -> None:
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]


def test_the_architecture_page_names_every_room() -> None:
    page = (ROOT / "docs/dev/architecture.md").read_text("utf-8")
    rooms = (room for room in TABLE if room != "accounting")
    missing = [room for room in rooms if f"| `{room.partition('.')[2]}` |" not in page]
    assert missing == []


@pytest.mark.parametrize(("package", "most"), [("mechanisms", 45), ("storage", 45), ("app", 55)])
def test_arrows_between_rooms_stay_few(package: str, most: int) -> None:
    assert sum(map(len, within(package).values())) <= most


def test_the_pictures_fit_the_imports() -> None:
    stale = [path.name for path, text in pictures().items() if path.read_text("utf-8") != text]
    assert stale == [], "python -m tests.architecture.drawing draws them again"
