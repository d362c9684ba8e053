"""Machine code on disk is never older than any kernel source it was made from."""

from __future__ import annotations

import shutil
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


def package(checkout: Path) -> Path:
    """A new package ``mechanisms`` with nothing but the compiler."""
    copy = checkout / "mechanisms"
    (copy / "kernels").mkdir(parents=True)
    (copy / "__init__.py").touch()
    (copy / "kernels" / "__init__.py").touch()
    (copy / "kernels" / "compiled.py").write_text(Path(compiled.__file__).read_text())
    return copy


def test_a_changed_callee_in_another_file_takes_effect(tmp_path: Path) -> None:
    """The case that the compiler's own cache gets wrong."""
    copy = package(tmp_path)
    (copy / "draws.py").write_text(CALLER.format(package="mechanisms"))
    results = []
    for value in (1, 2):
        (copy / "coins.py").write_text(CALLEE.format(value))
        # The option -B disables stored bytecode. Python would reuse it, because both versions of
        # the source have the same size and are written within the same second.
        run = [sys.executable, "-B", "-c", "from mechanisms.draws import draw; print(draw())"]
        results.append(subprocess.check_output(run, cwd=tmp_path, env={"PYTHONPATH": "."}))
    assert [int(result) for result in results] == [1, 2]


OTHER_PROCESSOR = """
import llvmlite.binding as llvm
features = llvm.get_host_cpu_features()
features["avx512f"] = not features.get("avx512f")
llvm.get_host_cpu_features = lambda: features
llvm.get_host_cpu_name = lambda: "znver9"
"""


def test_a_moved_checkout_on_a_like_processor_compiles_nothing(tmp_path: Path) -> None:
    here = tmp_path / "here"
    copy = package(here)
    (copy / "coins.py").write_text(CALLEE.format(1))
    (copy / "draws.py").write_text(CALLER.format(package="mechanisms"))
    assert compilations(here) == 1
    moved = tmp_path / "elsewhere" / "and deeper"
    shutil.copytree(here, moved)
    here.rename(tmp_path / "gone")
    assert compilations(moved, OTHER_PROCESSOR) == 0


def compilations(checkout: Path, before: str = "") -> int:
    """How many kernels a process of this checkout compiles for one draw."""
    after = "from mechanisms.draws import draw; draw(); missed = draw.stats.cache_misses"
    run = [sys.executable, "-B", "-c", f"{before}\n{after}; print(sum(missed.values()))"]
    out = subprocess.check_output(run, cwd=checkout, env={"PYTHONPATH": "."})
    return int(out)


def test_a_kernel_compiles_with_a_callee_that_was_loaded(tmp_path: Path) -> None:
    copy = package(tmp_path)
    (copy / "coins.py").write_text(CALLEE.format(1))
    (copy / "draws.py").write_text(CALLER.format(package="mechanisms"))
    assert compilations(tmp_path) == 1
    (index,) = copy.rglob("draws.draw-*.nbi")
    index.unlink()
    loaded = (
        "from mechanisms.coins import coin; coin(); assert coin.stats.cache_hits\n"
        "assert coin.overloads[()].library._shared_module is None"
    )
    assert compilations(tmp_path, loaded) == 1


@pytest.mark.parametrize(
    ("missing", "level"), [("", "x86-64-v3"), ("avx2", "x86-64-v2"), ("popcnt", None)]
)
def test_kernels_are_compiled_for_a_level_that_the_processor_has(
    missing: str, level: str | None
) -> None:
    features = compiled.LEVELS[0][1] | {"avx512f"}
    text = ",".join(("-" if name == missing else "+") + name for name in sorted(features))
    assert compiled.level_of(text) == level
    assert compiled.level_of("+neon,+sve") is None


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
    # Another process may look for the index file of compiled kernels before this process has
    # written it.
    index().unlink()
    compiled.compiled(first_level)(large)
    # The other process then overwrites the index file by its own, which lacks the second kernel.
    index().write_bytes(before)
    kernel: Any = compiled.compiled(first_level)
    assert kernel(small) == 7
    assert kernel.signatures == [(numba.typeof(small),)]
    assert kernel.stats.cache_hits
