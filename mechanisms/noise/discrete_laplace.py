"""Discrete Laplace noise for vectors of whole numbers: P(d) = (1 − p) / (1 + p) · p^|d|."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np

from mechanisms.kernels.compiled import compiled
from mechanisms.model.executor import Executor
from mechanisms.model.randomness import Randomness, Words
from mechanisms.noise.addition import Integers, add_noise
from mechanisms.noise.coins import EXHAUSTED, ONE, OVERFLOW, ZERO, geometric
from mechanisms.noise.rate import Rate

#: The number of decimal digits to which probabilities are computed. So many suffice to compare two
#: probabilities without error.
DIGITS = 60


def discrete_laplace(
    values: Integers, rate: Rate, randomness: Randomness, executor: Executor
) -> Integers:
    """``values`` with independent discrete Laplace noise on each, shape (n,).

    Args:
        values: private whole numbers; |value| < 2⁶² by public bounds.
        rate: ``Rate.of_counts(E, D)``: D bounds Σ|change| between neighbours.

    Raises: NoiseOverflow with probability below n·e⁻¹⁰²⁴, whatever the values.
    Privacy: ε-DP, ε = λ·D, under the neighbouring relation that bounds D.
    Source: Ghosh, Roughgarden, Sundararajan 2009; coins of Canonne, Kamath, Steinke 2020.
    """
    return add_noise(add_discrete_laplace, values, rate, randomness, executor)


@compiled
def add_discrete_laplace(
    values: Integers, start: int, a: np.uint64, b: np.uint64, mask: np.uint64, words: Words
) -> tuple[int, int]:
    """Add a geometric G with a random sign to values[start:]; an ``addition.Kernel``."""
    first = 0
    for i in range(start, values.size):
        at = first
        while True:
            noise, at = geometric(a, b, mask, words, at)
            if at == OVERFLOW:
                return i, OVERFLOW
            if at == EXHAUSTED or at == words.size:
                return i, first
            negative = (words[at] & ONE) == ONE
            at += 1
            # Size and sign of the noise are drawn separately. A draw of −0 is repeated, because
            # zero would otherwise be twice as likely.
            if noise != ZERO or not negative:
                break
        values[i] += -np.int64(noise) if negative else np.int64(noise)
        first = at
    return values.size, first


@lru_cache(maxsize=4096)
def likely_error(rate: Rate, confidence: float, cells: int = 1) -> int:
    """The least m at which all ``cells`` independent noises lie within ±m with this probability.

    With several cells it holds for all together, hence also for a cell that is chosen by its noisy
    value. It is ``half_width`` of the chance that one noise may miss.
    """
    with localcontext() as digits:
        digits.prec = DIGITS
        every = Decimal(repr(confidence))
        return half_width(rate, 1 - (every.ln() / cells).exp() if cells > 1 else 1 - every)


def half_width(rate: Rate, miss: Decimal | Fraction) -> int:
    """The least m at which |X| ≤ m with probability at least 1 − ``miss``, for 0 < miss < 1.

    Released value ± m is the shortest interval that contains the true number with at least this
    probability, because the law is symmetric and falls away from 0. The chance that one noise
    exceeds m is 2·p^{m + 1}/(1 + p). It is compared with 60 digits, so m is exact.
    """
    with localcontext() as digits:
        digits.prec = DIGITS
        if isinstance(miss, Fraction):
            miss = Decimal(miss.numerator) / miss.denominator
        exponent = Decimal(rate.a) / Decimal(rate.b)
        steps = (2 / ((1 + (-exponent).exp()) * miss)).ln() / exponent
        return max(0, math.ceil(steps) - 1)


def discrete_laplace_probability(noise: int, p: Fraction) -> Fraction:
    """P(noise) as a rational of p = e^−λ."""
    return (1 - p) / (1 + p) * p ** abs(noise)
