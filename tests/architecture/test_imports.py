"""Imports point one way, and nothing pure reads a clock, a setting, a log or a global generator."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.imports import PACKAGES, ROOT, sources, violations


def test_every_module_keeps_the_import_table() -> None:
    breaches = {str(path): violations(path, (ROOT / path).read_text("utf-8")) for path in sources()}
    assert {path: listed for path, listed in breaches.items() if listed} == {}


def test_every_package_is_looked_at() -> None:
    packages = {path.as_posix().removeprefix("client/").partition("/")[0] for path in sources()}
    assert packages == set(PACKAGES)


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("accounting/a.py", "import numpy"),
        ("accounting/a.py", "from mechanisms import domains"),
        ("accounting/a.py", "def f():\n    import time\n"),
        ("mechanisms/a.py", "from storage.ledger.ledger import Ledger"),
        ("mechanisms/a.py", "import pandas"),
        ("mechanisms/a.py", "def f():\n    import opendp"),
        ("mechanisms/a.py", "import sqlalchemy"),
        ("app/a.py", "import pytest"),
        ("mechanisms/a.py", "import numpy as np\nrng = np.random.default_rng()"),
        ("mechanisms/a.py", "import numpy\nnumpy.random.seed(1)"),
        ("mechanisms/a.py", "from numpy import random"),
        ("mechanisms/a.py", "from numpy.random import default_rng"),
        ("mechanisms/noise/a.py", "from random import Random"),
        ("mechanisms/noise/a.py", "from time import perf_counter"),
        ("mechanisms/noise/a.py", "import datetime as dt"),
        ("mechanisms/kernels/a.py", "import os\nos.environ['X']"),
        ("mechanisms/kernels/a.py", "from os import environ"),
        ("mechanisms/kernels/a.py", "import os as system\nsystem.getenv('X')"),
        ("mechanisms/a.py", "if True:\n    import logging"),
        ("mechanisms/a.py", "import importlib\nimportlib.import_module('app.main')"),
        ("mechanisms/a.py", "print(1)"),
        ("mechanisms/noise/a.py", "from ...storage import ledger"),
        ("mechanisms/noise/__init__.py", "from .. import numpy, random\nimport random"),
        ("storage/a.py", "import fastapi"),
        ("storage/a.py", "from app.config.settings import Settings"),
        ("storage/migrations/versions/a.py", "import app"),
        ("app/a.py", "import sqlalchemy"),
        ("app/routes/a.py", "from sqlalchemy.orm import Session"),
        ("app/a.py", "import sqlite3"),
        ("app/a.py", "def f():\n    import distributed"),
        ("app/cli/cluster.py", "from dask import config"),
        ("storage/a.py", "import distributed"),
        ("app/a.py", "q = 'SELECT id FROM query WHERE 1'"),
        ("app/a.py", "q = '''\n  update account set charged = 0'''"),
        ("app/a.py", "q = f'DELETE FROM {table}'"),
        ("app/a.py", "print('served')"),
        ("app/queries/a.py", "import fastapi"),
        ("app/queries/a.py", "from storage.ledger.ledger import Ledger"),
        ("app/queries/a.py", "from app.usecases.services import Services"),
        ("app/queries/a.py", "from .. import settings"),
        ("app/queries/a.py", "import time"),
        ("app/a.py", "from privypurse import PrivyPurse"),
        ("app/routes/a.py", "import privypurse"),
        ("app/cli/a.py", "def f():\n    from privypurse import PrivyPurse"),
        ("storage/a.py", "import privypurse"),
        ("client/privypurse/a.py", "import pydantic"),
        ("client/privypurse/a.py", "from accounting import privacy_loss"),
        ("client/privypurse/a.py", "from app.contract.models import Body"),
        ("client/privypurse/a.py", "print('waiting')"),
        ("client/privypurse/a.py", "def f():\n    import typer"),
        ("client/privypurse/a.py", "from privypurse.cli.service import fail"),
        ("client/privypurse/cli/a.py", "import pydantic"),
        ("client/privypurse/cli/a.py", "from app.config.settings import Settings"),
    ],
)
def test_a_breach_is_caught(path: str, source: str) -> None:
    assert violations(Path(path), source) != []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("accounting/a.py", "from decimal import Decimal\nfrom accounting import account"),
        ("mechanisms/noise/a.py", "import os\nkey = os.urandom(32)"),
        ("mechanisms/noise/a.py", "from ..domains import Dataset\nfrom . import words"),
        ("mechanisms/a.py", "def f(randomness):\n    return randomness.stream()"),
        ("storage/a.py", "import sqlite3\nq = 'SELECT 1 FROM query'"),
        ("app/cluster/a.py", "from distributed import Client\nimport dask.config"),
        ("app/cli/a.py", "print('listening')\nimport typer"),
        ("client/privypurse/cli/a.py", "import typer\nfrom privypurse import PrivyPurse"),
        ("client/privypurse/a.py", "import httpx, time\ndef f():\n    import numpy"),
        ("app/a.py", "text = 'Select the best node from a graph'\nimport fastapi"),
        ("app/queries/a.py", "from pydantic import BaseModel\nfrom app.queries.top_k import TopK"),
    ],
)
def test_what_is_allowed_passes(path: str, source: str) -> None:
    assert violations(Path(path), source) == []


def test_starting_the_service_loads_no_library_it_may_never_need() -> None:
    """Readers of files and symbolic libraries cost hundreds of megabytes: imported on use."""
    # The list names ``scipy.special`` and not ``scipy``, because numba imports the bare ``scipy``
    # if it is installed.
    heavy = (
        "authlib",
        "dask",
        "distributed",
        "httpx",
        "markdown_it",
        "matplotlib",
        "mcp",
        "mpmath",
        "networkx",
        "pandas",
        "pyarrow",
        "s3fs",
        "scipy.special",
    )
    code = f"import app.main, app.cli, sys; print([m for m in {heavy!r} if m in sys.modules])"
    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert loaded.stdout.strip() == "[]"


SPREADS = (
    "forests.py",
    "graphs/preparation.py",
    "graphs/supports.py",
    "set_tables.py",
    "subsets.py",
)


def test_what_is_spread_draws_nothing() -> None:
    """Noise is drawn in the service: kernels that may run elsewhere know no sampler."""
    kernels = ROOT / "mechanisms" / "kernels"
    kernels_with_parts = {
        path.relative_to(kernels).as_posix()
        for path in (ROOT / "mechanisms").rglob("*.py")
        if ".spread(" in path.read_text("utf-8") and path.name != "executor.py"
    }
    assert kernels_with_parts == set(SPREADS)
    for name in SPREADS:
        source = (kernels / name).read_text("utf-8")
        assert "noise" not in source
        assert "andomness" not in source
