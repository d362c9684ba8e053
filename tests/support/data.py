"""The folder of real graphs and tables; tests that need it skip when it is not there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _folder() -> Path:
    """The folder that the variable names, else the first one beside the checkout with the data."""
    if named := os.environ.get("PRIVYPURSE_DATA"):
        return Path(named)
    manifests = sorted(ROOT.parent.glob("*/data/manifest.json"))
    return manifests[0].parent if manifests else ROOT / "no-data"


FOLDER = _folder()


def data_file(name: str) -> Path:
    """A file of the data folder; skips the test, saying why, when it is absent."""
    path = FOLDER / name
    if not path.is_file():
        pytest.skip(f"needs {name}: set PRIVYPURSE_DATA to the folder of real data")
    return path
