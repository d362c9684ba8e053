"""The container files pass their checkers and keep what a later change could quietly lose."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.imports import ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")


def tool(name: str) -> str:
    """Where a checker is installed, beside this interpreter or on the path; else a skip."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if not found:
        pytest.skip(f"needs {name}")
    return found


def test_dockerfile_passes_hadolint() -> None:
    report = subprocess.run(
        [tool("hadolint"), "Dockerfile"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert report.returncode == 0, report.stdout + report.stderr


def test_compose_file_keeps_the_compose_specification() -> None:
    checker = [tool("check-jsonschema"), "--builtin-schema", "vendor.compose-spec"]
    report = subprocess.run(
        [*checker, "docker-compose.yml"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert report.returncode == 0, report.stdout + report.stderr


def test_the_image_serves_as_an_unprivileged_user_and_watches_itself() -> None:
    last_stage = DOCKERFILE.rpartition("\nFROM ")[2]
    assert re.search(r"^USER 999$", last_stage, re.MULTILINE)
    assert re.search(r"^VOLUME .*\"/data\"", last_stage, re.MULTILINE)
    assert re.search(r"^HEALTHCHECK .*\\\n.*healthz", last_stage, re.MULTILINE)
    assert "--require-hashes" in DOCKERFILE


def test_every_package_is_in_the_image_and_in_its_context() -> None:
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    for package in ("accounting", "mechanisms", "storage", "app", "client"):
        assert f"COPY {package} ./{package}" in DOCKERFILE
        assert f"!{package}/" in ignored
