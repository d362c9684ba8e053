"""The one way a kernel is compiled: to machine code, kept on disk, without the interpreter lock."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numba

P = ParamSpec("P")
R = TypeVar("R")

_PACKAGE = Path(__file__).parents[1]


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile ``function`` at its first call; later processes load it from the cache."""
    kernel: Any = numba.njit(nogil=True, cache=True)(function)
    files = kernel._cache._cache_file
    files.save = partial(_save, files)
    return kernel  # type: ignore[no-any-return]


def _save(files: Any, key: Any, data: Any) -> None:
    # The compiler numbers its files. Of two processes that compile at once for different types
    # both write number 1, and one's code may be run on the other's arrays from then on. So a
    # number is made of the types; what the other enters meanwhile may be lost, and compiled again.
    number = int(hashlib.sha256(repr(key).encode()).hexdigest()[:16], 16)
    codes = files._load_index()
    codes[key] = name = files._data_name(number)
    files._save_data(name, data)
    files._save_index(codes)


def fingerprint(package: Path) -> str:
    """Names the sources of all kernels below ``package``: it changes when any one of them does."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        source = path.read_bytes()
        if b"@compiled" in source:
            digest.update(source)
    return digest.hexdigest()[:16]


# The compiler's own cache knows the file of a kernel, but not those of the kernels it calls: after
# an upgrade an old coin would go on under new noise. So every state of the sources has its folder.
_config: Any = numba.config
_base = _config.CACHE_DIR or _PACKAGE / "__pycache__"
#: The state of the kernels of this process.
KERNELS = fingerprint(_PACKAGE)
_config.CACHE_DIR = str(Path(_base) / f"kernels-{KERNELS}")
