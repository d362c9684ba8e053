"""Numbers as whole steps of a public grid, clipped to public bounds, one per row.

The clipping makes the bound on one row's value exact, whatever the last digit of a float is.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.compiled import compiled

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def floored(numbers: NDArray[Any], exponent: int, origin: int, cap: int) -> Integers:
    """⌊x / 2^exponent⌋ − origin within ± cap, int64; a power of two changes no digit of x."""
    scaled = np.ldexp(numbers, -exponent)
    return _clipped(scaled, origin, cap)


def floored_squares(
    numbers: NDArray[Any], middle: float, exponent: int, origin: int, cap: int
) -> Integers:
    """⌊(x − middle)² / 2^exponent⌋ − origin within ± cap, int64, with the square in doubles."""
    distances = numbers - middle
    return _clipped(np.ldexp(distances * distances, -exponent), origin, cap)


@compiled
def _clipped(scaled: Floats, origin: int, cap: int) -> Integers:
    steps = np.empty(len(scaled), np.int64)
    for row in range(len(scaled)):
        value = int(np.floor(scaled[row])) - origin
        steps[row] = min(max(value, -cap), cap)
    return steps
