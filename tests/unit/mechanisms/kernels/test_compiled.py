"""Machine code on disk is never older than any kernel source it was made from."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numpy.typing import NDArray

from mechanisms.kernels import compiled

CALLEE = "from mechanisms.kernels.compiled import compiled\n@compiled\ndef coin(): return {}\n"
CALLER = (
    "from mechanisms.kernels.compiled import compiled\nfrom {package}.coins import coin\n"
    "@compiled\ndef draw(): return coin()\n"
)


def test_the_fingerprint_follows_kernels_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "coins.py").write_text(CALLEE.format(1))
    (tmp_path / "plain.py").write_text("x = 1\n")
    before = compiled.fingerprint(tmp_path)
    (tmp_path / "plain.py").write_text("x = 2\n")
    assert compiled.fingerprint(tmp_path) == before
    (tmp_path / "coins.py").write_text(CALLEE.format(2))
    assert compiled.fingerprint(tmp_path) != before


def test_a_changed_callee_in_another_file_takes_effect(tmp_path: Path) -> None:
    """The case that the compiler's own cache gets wrong."""
    root = Path(compiled.__file__).parents[2]
    copy = tmp_path / "mechanisms"
    (copy / "kernels").mkdir(parents=True)
    (copy / "__init__.py").touch()
    (copy / "kernels" / "__init__.py").touch()
    source = (root / "mechanisms/kernels/compiled.py").read_text()
    (copy / "kernels" / "compiled.py").write_text(source)
    (copy / "draws.py").write_text(CALLER.format(package="mechanisms"))
    results = []
    for value in (1, 2):
        (copy / "coins.py").write_text(CALLEE.format(value))
        # -B: bytecode is matched by size and whole second of its source, which are equal here.
        run = [sys.executable, "-B", "-c", "from mechanisms.draws import draw; print(draw())"]
        results.append(subprocess.check_output(run, cwd=tmp_path, env={"PYTHONPATH": "."}))
    assert [int(result) for result in results] == [1, 2]


def first_level(codes: NDArray[Any]) -> Any:
    return codes[0]


def test_two_processes_that_compile_at_once_keep_their_code_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    small, large = np.array([7], np.uint8), np.array([7], np.uint16)

    def index() -> Path:
        (path,) = tmp_path.rglob("*.nbi")
        return path

    compiled.compiled(first_level)(small)
    before = index().read_bytes()
    index().unlink()  # The other process looked before the file existed
    compiled.compiled(first_level)(large)
    index().write_bytes(before)  # and wrote its own file first.
    kernel: Any = compiled.compiled(first_level)
    assert kernel(small) == 7
    assert kernel.signatures == [(numba.typeof(small),)]
    assert kernel.stats.cache_hits
