"""The one way to compile a kernel: to machine code, cached on disk, without the interpreter
lock."""

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
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return function
    kernel: Any = numba.njit(nogil=True, cache=True)(function)
    files = kernel._cache._cache_file
    files.save = partial(_save, files)
    return kernel  # type: ignore[no-any-return]


def _save(files: Any, key: Any, data: Any) -> None:
    # By default the compiler numbers its files. Two processes that compile for different types at
    # the same time would both write number 1, and one could then run the other's code on its own
    # arrays. So the number is a hash of the types. A concurrent index entry may be lost; it is then
    # compiled again.
    number = int(hashlib.sha256(repr(key).encode()).hexdigest()[:16], 16)
    codes = files._load_index()
    codes[key] = name = files._data_name(number)
    files._save_data(name, data)
    files._save_index(codes)


def fingerprint(package: Path) -> str:
    """A hash of the sources of all kernels below ``package``; it changes when any of them
    changes."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        source = path.read_bytes()
        if b"@compiled" in source:
            digest.update(source)
    return digest.hexdigest()[:16]


# Danger: the compiler's cache notices a change in the file of a kernel, but not in the files of
# kernels that it calls. After an upgrade, a new noise kernel would run old code for its coins. So
# each state of the sources has its own cache folder.
_config: Any = numba.config
_base = _config.CACHE_DIR or _PACKAGE / "__pycache__"
#: The hash of the kernel sources that this process runs.
KERNELS = fingerprint(_PACKAGE)
_config.CACHE_DIR = str(Path(_base) / f"kernels-{KERNELS}")
