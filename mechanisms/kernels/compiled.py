"""The one way to compile a kernel: to machine code, cached on disk, without the interpreter
lock.

The code is found again after the checkout was moved, and on another processor of the same level.
"""

import hashlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numba
from numba.core.caching import UserProvidedCacheLocator
from numba.core.codegen import get_host_cpu_features, ll  # type: ignore[attr-defined]

P = ParamSpec("P")
R = TypeVar("R")

_PACKAGE = Path(__file__).parents[1]
_LEVEL_2 = {"cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3"}
_LEVEL_3 = _LEVEL_2 | {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"}
#: The x86-64 levels with the processor features of each, highest first. The fourth level, with
#: 512-bit vectors, is left out: kernels gain little, and few processors could run their code.
LEVELS = (("x86-64-v3", _LEVEL_3), ("x86-64-v2", _LEVEL_2))


class CacheFolder(UserProvidedCacheLocator):
    """Names the cache of a kernel by its place in the package, wherever the checkout lies."""

    @classmethod
    def get_suitable_cache_subpath(cls, py_file: str) -> str:
        path = Path(py_file)
        if not path.is_relative_to(_PACKAGE):
            folder: str = super().get_suitable_cache_subpath(py_file)  # type: ignore[no-untyped-call]
            return folder
        return "_".join(path.relative_to(_PACKAGE).parent.parts)


def level_of(features: str) -> str | None:
    """The level of x86-64 of a processor whose features are ``+avx,-avx2,…``; None for others."""
    names = {name[1:] for name in features.split(",") if name.startswith("+")}
    return next((level for level, needed in LEVELS if needed <= names), None)


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile ``function`` at its first call; later processes load it from the cache."""
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return function
    kernel: Any = numba.njit(nogil=True, cache=True)(function)
    files = kernel._cache._cache_file
    files.save = partial(_save, files)
    codes = kernel._cache._impl
    codes.rebuild = partial(_rebuild, codes.rebuild)
    return kernel  # type: ignore[no-any-return]


def _save(files: Any, key: Any, data: Any) -> None:
    # By default the compiler numbers the files of its cache. Two processes that compile for
    # different types at the same time would both write number 1, and one could run the other's code
    # on its own arrays. So the number is a hash of the types. Concurrent writes may lose an index
    # entry; its kernel is then compiled again.
    number = int(hashlib.sha256(repr(key).encode()).hexdigest()[:16], 16)
    codes = files._load_index()
    codes[key] = name = files._data_name(number)
    files._save_data(name, data)
    files._save_index(codes)


def _rebuild(rebuild: Callable[..., Any], context: Any, data: Any) -> Any:
    # The compiler needs the intermediate code of a loaded kernel only to compile another kernel
    # that calls it. It would keep this code as objects of 20 MB in all. So the code is kept as
    # bytes, which take a tenth of that, and parsed when it is needed.
    result = rebuild(context, data)
    library = result.library
    bitcode = library._shared_module.as_bitcode()
    library._shared_module = None
    library._get_module_for_linking = lambda: ll.parse_bitcode(bitcode)
    return result


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
# kernels that it calls. After an upgrade, a new noise kernel would run old code to draw its random
# bits. So each state of the sources has its own cache folder.
_config: Any = numba.config
_base = _config.CACHE_DIR or _PACKAGE / "__pycache__"
#: The hash of the kernel sources that this process runs. It names their cache folder. Speeds that
#: were measured with other sources, and cluster jobs for other sources, are not used.
KERNELS = fingerprint(_PACKAGE)
_config.CACHE_DIR = str(Path(_base) / f"kernels-{KERNELS}")
_config.CACHE_LOCATOR_CLASSES = (
    f"{__name__}.{CacheFolder.__name__},InTreeCacheLocator,UserWideCacheLocator"
)
# Kernels are compiled for the x86-64 level of the processor. Code for its exact model would be
# compiled again on every other model that shares the cache.
_level = level_of(get_host_cpu_features())  # type: ignore[no-untyped-call]
if _level is not None and _config.CPU_NAME is None and _config.CPU_FEATURES is None:
    _config.CPU_NAME, _config.CPU_FEATURES = _level, ""
