"""The lock files: every package pinned and hashed, no addresses, one version for everyone."""

from __future__ import annotations

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.architecture.imports import ROOT

LOCKS = ("requirements.lock", "requirements-cluster.lock", "requirements-dev.lock")


def pinned(lock: str) -> dict[str, set[str]]:
    """Name → the pins of one lock file, environment markers included."""
    pins: dict[str, set[str]] = {}
    for line in (ROOT / lock).read_text("utf-8").splitlines():
        if line and not line[0].isspace() and not line.startswith("#"):
            pin = line.removesuffix("\\").strip()
            pins.setdefault(canonicalize_name(re.split(r"[=\[; ]", pin)[0]), set()).add(pin)
    return pins


@pytest.mark.parametrize("lock", LOCKS)
def test_every_pin_is_exact_and_hashed(lock: str) -> None:
    text = (ROOT / lock).read_text("utf-8")
    blocks = re.findall(r"^\S.*(?:\n[ \t]+.*)*", text, re.MULTILINE)
    assert len(blocks) > 30
    for block in blocks:
        assert re.match(r"[\w.-]+==\S+", block), block.splitlines()[0]
        assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", block), block.splitlines()[0]


@pytest.mark.parametrize("lock", LOCKS)
def test_no_address_or_local_path_is_locked_in(lock: str) -> None:
    addresses = re.findall(
        r".*(?:://|--[a-z-]*(?:index|links)| @ | file:).*", (ROOT / lock).read_text("utf-8")
    )
    assert addresses == []


@pytest.mark.parametrize("lock", LOCKS[:2])
def test_tests_run_against_the_versions_that_serve(lock: str) -> None:
    runtime, development = pinned(lock), pinned(LOCKS[-1])
    # Versions are compared without their environment markers: the marker of a package may be
    # written differently where another package needs it too.
    versions = {name: {p.partition(" ;")[0] for p in pins} for name, pins in runtime.items()}
    expected = {
        name: {p.partition(" ;")[0] for p in development.get(name, set())} for name in runtime
    }
    assert versions == expected


def test_every_declared_dependency_is_locked_at_a_version_it_allows() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needed, optional = project["dependencies"], project["optional-dependencies"]
    extra = [r for group in optional.values() for r in group]
    expected = (needed, needed + optional["cluster"] + optional["s3"], needed + extra)
    for lock, requirements in zip(LOCKS, expected, strict=True):
        pins = pinned(lock)
        for requirement in map(Requirement, requirements):
            for pin in pins[canonicalize_name(requirement.name)]:
                version = re.split(r"==|[; ]", pin)[1]
                assert requirement.specifier.contains(version, prereleases=True), (lock, pin)
