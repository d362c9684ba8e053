"""Doors translate: they branch on no role, and reach storage through use cases alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from app.config.roles import Role
from tests.architecture.imports import ROOT, imported

#: The folders of all doors, which translate between the outside and the use cases. Every file in
#: them is checked.
DOORS = ("app/routes", "app/dashboard", "app/cli", "app/mcp")
ROLES = frozenset(get_args(Role))
#: The attributes of ``Services`` that a door may read directly, because they reach no storage.
OPEN = frozenset({"settings"})


def sources() -> list[Path]:
    """Every module of a door, relative to the root."""
    paths = (path for door in DOORS for path in (ROOT / door).rglob("*.py"))
    return sorted(path.relative_to(ROOT) for path in paths)


def breaches(path: Path, source: str) -> Iterator[str]:
    """What the module of a door does that only a use case may do."""
    tree = ast.parse(source)
    package = ".".join(path.with_suffix("").parts[:-1])
    for name, line in imported(tree, package):
        if name.startswith("storage") and not name.startswith("storage.errors"):
            yield f"{path}:{line}: imports {name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "roles":
            yield f"{path}:{node.lineno}: reads roles"
        elif isinstance(node, ast.Compare) and _names_a_role(node):
            yield f"{path}:{node.lineno}: compares with a role"
        elif isinstance(node, ast.Attribute) and _is_services(node.value) and node.attr not in OPEN:
            yield f"{path}:{node.lineno}: reaches services.{node.attr}"


def _names_a_role(node: ast.Compare) -> bool:
    constants = (one for part in (node.left, *node.comparators) for one in ast.walk(part))
    return any(isinstance(one, ast.Constant) and one.value in ROLES for one in constants)


def _is_services(node: ast.expr) -> bool:
    """``services``, or ``services_of(request)``."""
    if isinstance(node, ast.Call):
        return ast.unparse(node.func).endswith("services_of")
    return ast.unparse(node).rpartition(".")[2] == "services"


def test_doors_are_found() -> None:
    doors = {path.parts[1] for path in sources()}
    assert doors >= {"routes", "dashboard", "cli"}


def test_doors_only_translate() -> None:
    seen = [
        breach for path in sources() for breach in breaches(path, (ROOT / path).read_text("utf-8"))
    ]
    assert seen == []


def test_templates_name_no_role() -> None:
    for path in (ROOT / "app/dashboard/templates").glob("*.html"):
        text = path.read_text("utf-8")
        assert "in user.roles" not in text, path.name
        assert "user.roles ==" not in text, path.name


@pytest.mark.parametrize(
    "source",
    [
        "def page(caller):\n    return caller.roles",
        "def page(user):\n    if 'auditor' in user.groups:\n        return 1",
        "def page(role):\n    return role == 'owner'",
        "from storage.people.users import User",
        "def page():\n    from storage.ledger import ledger",
        "import storage.catalogue.datasets",
        "def page(services):\n    return services.datasets.find('a')",
        "def page(request):\n    return services_of(request).ledger",
        "def page(request):\n    return request.app.state.services.users",
    ],
)
def test_a_seeded_decision_is_seen(source: str) -> None:
    assert list(breaches(Path("app/routes/seeded.py"), source)) != []


@pytest.mark.parametrize(
    "source",
    [
        "from storage.errors import NotFound",
        "from app.usecases.accounts import budgets\n\ndef page(s, c):\n    budgets.own(s, c)",
        "def page(services):\n    return services.settings.upload_limit",
        "@api.get('/v1/audit', dependencies=[allow('auditor')])\ndef trail():\n    return None",
    ],
)
def test_what_doors_may_do_is_not_a_breach(source: str) -> None:
    assert list(breaches(Path("app/routes/seeded.py"), source)) == []
