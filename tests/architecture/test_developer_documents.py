"""docs/dev cites files and tests that exist."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.imports import ROOT

PAGES = sorted((ROOT / "docs/dev").rglob("*.md"))
CITED = re.compile(
    r"`((?:accounting|mechanisms|storage|app|tests|client|benchmarks)/[\w/]+\.py)(?:::(\w+))?"
)


@cache
def functions(path: Path) -> frozenset[str]:
    return frozenset(re.findall(r"^ *(?:async )?def (\w+)", path.read_text("utf-8"), re.MULTILINE))


def missing(text: str) -> list[str]:
    """The files and functions that a text cites and that are not there."""
    bad = []
    for name, function in CITED.findall(text):
        path = ROOT / name
        if not path.is_file() or (function and function not in functions(path)):
            bad.append(f"{name}::{function}" if function else name)
    return bad


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_cited_files_and_tests_exist(page: Path) -> None:
    assert missing(page.read_text("utf-8")) == []


def test_a_wrong_citation_is_seen() -> None:
    assert missing("see `tests/conftest.py::test_nothing`, `mechanisms/nothing.py`") == [
        "tests/conftest.py::test_nothing",
        "mechanisms/nothing.py",
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)(?:#[\w-]*)?\)", page.read_text("utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []
