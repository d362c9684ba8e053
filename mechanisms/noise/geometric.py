"""One-sided geometric noise: P(G = g) = (1 − p)·p^g, p = e^−λ, for g = 0, 1, …"""

from fractions import Fraction

import numpy as np

from mechanisms.kernels.compiled import compiled
from mechanisms.model.randomness import Words
from mechanisms.noise.addition import Integers
from mechanisms.noise.coins import OVERFLOW, geometric


@compiled
def add_geometric(
    values: Integers, start: int, a: np.uint64, b: np.uint64, mask: np.uint64, words: Words
) -> tuple[int, int]:
    """Add a geometric G to values[start:] until the words end; an ``addition.Kernel``."""
    first = 0
    for i in range(start, values.size):
        noise, at = geometric(a, b, mask, words, first)
        if at == OVERFLOW:
            return i, OVERFLOW
        if at < 0:
            return i, first
        values[i] += np.int64(noise)
        first = at
    return values.size, first


def geometric_probability(noise: int, p: Fraction) -> Fraction:
    """P(G = noise) as a rational of p = e^−λ."""
    return (1 - p) * p**noise if noise >= 0 else Fraction(0)
