"""Makes kernels run as plain Python at a bearable speed; import it before any computation."""

from __future__ import annotations

import importlib
import pkgutil
import warnings

import numba
import numpy as np

import mechanisms
from mechanisms.kernels import radix

if not numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
    raise RuntimeError("start this process with NUMBA_DISABLE_JIT=1")

#: Kernels let sums overflow on purpose, and NumPy warns of that in plain Python.
warnings.simplefilter("ignore", RuntimeWarning)
# Radix sort uses digits of 4 bits here: with 11 bits, every sort would go through 2048 counters in
# plain Python.
radix._BITS = 4


def set_bits(word: np.uint64) -> np.uint64:
    return np.uint64(int(word).bit_count())


for _module in pkgutil.walk_packages(mechanisms.__path__, "mechanisms."):
    _loaded = importlib.import_module(_module.name)
    if hasattr(_loaded, "set_bits"):
        _loaded.set_bits = set_bits
