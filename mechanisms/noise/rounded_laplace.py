"""Laplace noise of any rational scale, rounded down to the grid: ⌊Lap(scale)⌋ exactly.

For a statistic f on the grid, ⌊f + Lap⌋ = f + ⌊Lap⌋ is a function of the continuous answer. So
every theorem about continuous Laplace noise holds, including those for scales that depend on the
records.
"""

from fractions import Fraction

import numpy as np

from mechanisms.kernels.compiled import compiled
from mechanisms.model.executor import Executor
from mechanisms.model.randomness import Randomness, Words
from mechanisms.noise.addition import Integers, add_noise
from mechanisms.noise.coins import EXHAUSTED, ONE, OVERFLOW, geometric
from mechanisms.noise.rate import Rate


def rounded_laplace(
    values: Integers, rate: Rate, randomness: Randomness, executor: Executor
) -> Integers:
    """``values`` with independent ⌊Lap(1/λ)⌋ on each, shape (n,), in grid steps.

    The noise has mean −½: half a step added to the answer centres it.

    Args:
        values: private whole numbers of grid steps; |value| < 2⁶² by public bounds.
        rate: ``Rate.of_scale(scale)``. A private scale must lie on a public ladder of scales
            that ``Rate`` all accepts, and must still be smooth after the rounding to the ladder,
            which callers do. The number of words depends on the scale, so the release instant must
            hide it.

    Raises: NoiseOverflow with probability below n·e⁻¹⁰²⁴, whatever the values.
    Privacy: as continuous Laplace noise of this scale.
    Source: Nissim, Raskhodnikova, Smith 2007, for scales by smooth sensitivity.
    """
    return add_noise(add_rounded_laplace, values, rate, randomness, executor)


@compiled
def add_rounded_laplace(
    values: Integers, start: int, a: np.uint64, b: np.uint64, mask: np.uint64, words: Words
) -> tuple[int, int]:
    """Add a geometric G or −1 − G, equally likely, to values[start:]; an ``addition.Kernel``."""
    first = 0
    for i in range(start, values.size):
        noise, at = geometric(a, b, mask, words, first)
        if at == OVERFLOW:
            return i, OVERFLOW
        if at == EXHAUSTED or at == words.size:
            return i, first
        negative = (words[at] & ONE) == ONE
        values[i] += -1 - np.int64(noise) if negative else np.int64(noise)
        first = at + 1
    return values.size, first


def rounded_laplace_probability(noise: int, p: Fraction) -> Fraction:
    """P(⌊Lap⌋ = noise) as a rational of p = e^−λ."""
    return (1 - p) / 2 * p ** (noise if noise >= 0 else -1 - noise)
