"""No name of the code is one that docs/dev/words.md replaces."""

from __future__ import annotations

import pytest

from tests.architecture.imports import ROOT
from tests.architecture.names import CLASSES, VARIABLES, banned

SOURCES = ("accounting", "mechanisms", "storage", "app", "client", "benchmarks")
FOLDERS = (*SOURCES, "tests", "examples", "scripts")


def test_no_name_is_banned() -> None:
    names = {
        path.relative_to(ROOT).as_posix(): lines
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        if (lines := banned(path.read_text("utf-8")))
    }
    assert names == {}


@pytest.mark.parametrize("name", sorted(VARIABLES))
@pytest.mark.parametrize(
    "source",
    ["{0} = 1", "def f({0}): pass", "for {0} in []: pass", "def {0}(): pass", "x.{0} = 1"],
)
def test_a_banned_name_is_seen(name: str, source: str) -> None:
    assert banned(source.format(name)) == [f"1: {name}"]


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_a_banned_class_is_seen(name: str) -> None:
    assert banned(f"class {name}: pass") == [f"1: {name}"]


def test_a_side_is_no_remainder() -> None:
    assert banned("def f(left, right): pass") == []
