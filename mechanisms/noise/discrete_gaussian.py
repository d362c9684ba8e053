"""Discrete Gaussian noise for vectors of whole numbers: P(d) ∝ exp(−d²/(2σ²)).

σ = steps/1024 with whole ``steps``, so that every coin is exact in 64 bits. It has no finite ε: its
loss is counted in ρ alone. Danger: a smaller number of steps than ``Deviation.of`` returns has too
little noise for the charge.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Self

import numpy as np

from accounting.rho import FEMTO
from mechanisms.kernels.compiled import compiled
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.executor import Executor
from mechanisms.model.randomness import Randomness, Words
from mechanisms.noise.addition import Integers, add_noise
from mechanisms.noise.coins import EXHAUSTED, ONE, OVERFLOW, ZERO, below, bernoulli_exp, geometric

#: The standard deviation σ is a whole number of steps of 1/1024.
GRID = 1024
#: σ is at most 2¹⁶, so that all products stay within 64 bits.
MOST_STEPS = 1 << 26
#: A Gaussian draw takes up to this many times as long as a Laplace draw.
GAUSSIAN_WORK = 4
_GRID = np.uint64(GRID)
_TWO = np.uint64(2)


@dataclass(frozen=True, slots=True)
class Deviation:
    """σ = steps/1024. Raises: UnsupportedQuery for steps outside of 1 … 2²⁶."""

    steps: int

    def __post_init__(self) -> None:
        if not 1 <= self.steps <= MOST_STEPS:
            raise UnsupportedQuery("this rho needs Gaussian noise outside of exact arithmetic")

    @classmethod
    def of(cls, rho_femto: int, squares: int) -> Self:
        """The least σ at which Q/(2σ²) is at most ρ: ``squares`` is Q, a bound on Σ change²."""
        if rho_femto < 1:
            raise UnsupportedQuery("the share of one release is less than the smallest rho, 10⁻¹⁵")
        # The loss of a release is Q/(2σ²), where Q bounds the sum of the squared changes of the
        # numbers. For σ = steps/1024 it is at most ρ if steps² ≥ Q·1024²/(2ρ). The quotient and its
        # square root are rounded up, so the release never exceeds ρ.
        least = -(-FEMTO * squares * GRID * GRID // (2 * rho_femto))
        return cls(isqrt(least - 1) + 1)

    @property
    def square(self) -> Fraction:
        """σ² as a rational."""
        return Fraction(self.steps, GRID) ** 2

    @property
    def a(self) -> int:
        """The first number that defines the law, for ``addition``."""
        return self.steps

    @property
    def b(self) -> int:
        """⌊σ⌋ + 1, the scale of the Laplace noise that is proposed."""
        return self.steps // GRID + 1


def discrete_gaussian(
    values: Integers, deviation: Deviation, randomness: Randomness, executor: Executor
) -> Integers:
    """``values`` with independent discrete Gaussian noise on each, shape (n,).

    Args:
        values: private whole numbers; |value| < 2⁶² by public bounds.
        deviation: ``Deviation.of(ρ, Q)``: Q bounds Σ change² between neighbours.

    Raises: NoiseOverflow with probability below n·e⁻¹⁰²⁴, whatever the values.
    Privacy: ρ-zCDP with ρ = Q/(2σ²), under the neighbouring relation that bounds Q.
    Source: Canonne, Kamath, Steinke 2020, Algorithm 3 and Theorem 14.
    """
    return add_noise(add_discrete_gaussian, values, deviation, randomness, executor)


@compiled
def half_square(
    u: np.uint64, b: np.uint64, mask: np.uint64, words: Words, at: int
) -> tuple[bool, int]:
    """True with probability exp(−(u / b)² / 2), for 0 ≤ u ≤ b; see ``coins.bernoulli_exp``."""
    k = ONE
    small = ZERO  # The bit mask of the numbers below k, which gains bits as k grows.
    while True:
        for _ in range(2):
            draw, at = below(b, mask, words, at)
            if at < 0 or draw >= u:
                return (k & ONE) == ONE, at
        draw, at = below(_TWO, ONE, words, at)
        if at < 0 or draw != ZERO:
            return (k & ONE) == ONE, at
        draw, at = below(k, small, words, at)
        if at < 0 or draw != ZERO:
            return (k & ONE) == ONE, at
        if k > small:
            small = (small << ONE) | ONE
        k += ONE


@compiled
def accepted(
    m: np.uint64, f: np.uint64, b: np.uint64, mask: np.uint64, words: Words, at: int
) -> tuple[bool, int]:
    """True with probability exp(−v²/2) for v = m + f/b, by coins of exp(−m²/2 − m·f/b − …).

    The coins stop at the first false one: together they have the law of the conjunction.
    """
    for _ in range(m * m):
        heads, at = bernoulli_exp(ONE, _TWO, ONE, words, at)
        if at < 0 or not heads:
            return False, at
    for _ in range(m):
        heads, at = bernoulli_exp(f, b, mask, words, at)
        if at < 0 or not heads:
            return False, at
    return half_square(f, b, mask, words, at)


@compiled
def add_discrete_gaussian(
    values: Integers, start: int, a: np.uint64, b: np.uint64, mask: np.uint64, words: Words
) -> tuple[int, int]:
    """Add Gaussian noise to values[start:]; an ``addition.Kernel`` with a = 1024·σ, b = ⌊σ⌋ + 1.

    A Laplace y of rate 1/b is accepted with probability exp(−(|y| − σ²/b)²/(2σ²)). The product with
    exp(−|y|/b) is proportional to exp(−y²/(2σ²)).
    """
    unit = a * _GRID * b
    keep = unit - ONE
    for shift in (1, 2, 4, 8, 16, 32):
        keep |= keep >> np.uint64(shift)
    step, centre = _GRID * _GRID * b, a * a
    first = 0
    for i in range(start, values.size):
        at = first
        while True:
            noise, at = geometric(ONE, b, mask, words, at)
            if at == OVERFLOW:
                return i, OVERFLOW
            if at == EXHAUSTED or at == words.size:
                return i, first
            negative = (words[at] & ONE) == ONE
            at += 1
            # Size and sign of the noise are drawn separately. A draw of −0 is repeated, because
            # zero would otherwise be twice as likely.
            if noise == ZERO and negative:
                continue
            place = noise * step
            gap = place - centre if place > centre else centre - place
            whole = gap // unit
            heads, at = accepted(whole, gap - whole * unit, unit, keep, words, at)
            if at < 0:
                return i, first
            if heads:
                break
        values[i] += -np.int64(noise) if negative else np.int64(noise)
        first = at
    return values.size, first
