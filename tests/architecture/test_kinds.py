"""A query kind is one folder: nothing outside it knows the kind by name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.queries import QUERY_KINDS
from tests.architecture.imports import ROOT

FOLDERS = [ROOT / "app" / "queries" / name for name in QUERY_KINDS]
#: The demo is a client of the service, so it may name the kinds of query that it sends.
CLIENTS = [ROOT / "app" / "demo"]
#: The files that the folder of every query kind must have. Many kinds also have a form and a
#: drawing.
FILES = {"__init__.py", "body.py", "examples.py", "answer.html"}
#: A text "table" does not count as the name of the query kind: it is also the name of a kind of
#: dataset, and a text does not show which of the two is meant.
OF_DATASETS = {"table"}
NAMES = QUERY_KINDS.keys() - OF_DATASETS


def outside() -> list[Path]:
    paths = [*(ROOT / "app").rglob("*.py"), *(ROOT / "app").rglob("*.html")]
    inside = [*FOLDERS, *CLIENTS]
    return [path for path in paths if not any(path.is_relative_to(one) for one in inside)]


def names_in_python(source: str) -> Iterator[str]:
    """Texts, identifiers and imports that name a kind."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            # A short text such as "tree" or "tree id3" names a query kind; a sentence about trees
            # does not.
            if node.value.partition(" ")[0] in NAMES and node.value.count(" ") < 2:
                yield node.value
        elif isinstance(node, ast.ImportFrom | ast.Import):
            module = getattr(node, "module", None) or ""
            for name in [module, *(f"{module}.{one.name}" for one in node.names)]:
                parts = name.strip(".").split(".")
                if parts[:2] == ["app", "queries"] and {*parts[2:3]} & QUERY_KINDS.keys():
                    yield name


def names_in_template(source: str) -> Iterator[str]:
    """Quoted texts and members, inside the marks of templates, that name a kind."""
    for expression in re.findall(r"\{[{%].*?[%}]\}", source, re.DOTALL):
        for text in re.findall(r"""["'](\w+)["']|\.(\w+)""", expression):
            yield from (one for one in text if one in NAMES)


def names_in(path: Path) -> list[str]:
    reader = names_in_python if path.suffix == ".py" else names_in_template
    return list(reader(path.read_text("utf-8")))


def test_no_kind_is_named_outside_its_folder() -> None:
    named = {path.relative_to(ROOT).as_posix(): names_in(path) for path in outside()}
    assert {path: names for path, names in named.items() if names} == {}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_folder_has_its_files_and_knows_no_other_kind(folder: Path) -> None:
    assert {path.name for path in folder.iterdir()} >= FILES
    others = {f"app.queries.{name}" for name in QUERY_KINDS} - {f"app.queries.{folder.name}"}
    for path in folder.glob("*.py"):
        for name in names_in_python(path.read_text("utf-8")):
            assert not any(name.startswith(other) for other in others), (path.name, name)


@pytest.mark.parametrize(
    "source",
    [
        'if kind == "tree": pass',
        'TARGETS = {"statistic": ("error",)}',
        'FORMS = {"tree id3": 1}',
        "from app.queries.top_k.body import TopK",
        "from app.queries import distance",
        "import app.queries.clustering.body",
    ],
)
def test_a_name_in_python_is_seen(source: str) -> None:
    assert list(names_in_python(source))


@pytest.mark.parametrize(
    "source", ['{% if kind == "tree" %}', "{{ query.query.statistic }}", "{% set k = 'top_k' %}"]
)
def test_a_name_in_a_template_is_seen(source: str) -> None:
    assert list(names_in_template(source))
