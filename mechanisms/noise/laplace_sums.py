"""The law of a sum of m independent discrete Laplace noises, and its shortest intervals.

For d ≥ 0 the sum X has P(X ≥ d) = Σ_{k=1…m} w_k · P(N_k ≥ d), where N_k is negative binomial: the
number of successes of chance p = e^−λ before the k-th failure. All w_k are positive: they are
coefficients of ((1 − u) / (1 − p² − u))^m, the factor of the generating function that is regular
at its pole. So no digits cancel, whatever m and λ are.

Intervals say how wide noise is; they decide no privacy. Floats are rounded towards wider ones.
"""

from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincc

from mechanisms.noise.rate import Rate

#: Weights below this share of all weights change no probability that an interval reads.
_NEGLIGIBLE = 1e-18
#: The relative error that the tail may have: intervals are as wide as if it were this much larger.
_MARGIN = 1e-9
_SCALE = 2.0**500

Floats = NDArray[np.float64]


def tail(rate: Rate, terms: int, distance: int) -> float:
    """P(X ≥ distance) for the sum X of ``terms`` ≥ 1 noises; the distance is at least 0."""
    failures, weights = _mixture(rate, terms)
    if distance == 0:
        return float(weights.sum())
    failure = -np.expm1(-float(rate.exponent()))
    return float(weights @ betaincc(failures, float(distance), failure))


@lru_cache(maxsize=4096)
def half_width(rate: Rate, terms: int, miss: Fraction) -> int:
    """The least m at which |X| ≤ m with probability at least 1 − ``miss``, for 0 < miss < 1.

    The interval value ± m is the shortest around the released value: the law is symmetric.
    """
    enough = float(miss) * (1 - _MARGIN) / 2

    def holds(m: int) -> bool:
        return tail(rate, terms, m + 1) <= enough

    low, high = -1, 1
    while not holds(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def variance(rate: Rate) -> float:
    """The variance of one noise, 2p / (1 − p)²."""
    step = float(rate.exponent())
    return float(2 * np.exp(-step) / np.expm1(-step) ** 2)


@lru_cache(maxsize=256)
def _mixture(rate: Rate, terms: int) -> tuple[Floats, Floats]:
    """The numbers of failures k with weights that count, and these weights, (weights,) each."""
    step = float(rate.exponent())
    p, failure = np.exp(-step), -np.expm1(-step)
    c = failure * (1 + p)
    # g_i = (1 − p)^i · h_i with h_i the coefficient of u^i; the weight of k = m − i is
    # proportional to g_i. Large ones are divided by a power of two that ``shifts`` counts.
    mantissas, shifts = np.empty(terms), np.empty(terms, np.int64)
    before, here, shift = 0.0, 1.0, 0
    for i in range(terms):
        mantissas[i], shifts[i] = here, shift
        growth = ((1 + c) * i + terms * p * p) * here - failure * (i - 1) * before
        before, here = here, max(growth / ((1 + p) * (i + 1)), 0.0)
        if here > _SCALE:
            before, here, shift = before / _SCALE, here / _SCALE, shift + 1
    weights = mantissas * np.exp2(500.0 * np.maximum(shifts - shift, -2))
    failures = terms - np.arange(terms, dtype=np.float64)
    # Σw_k = P(X ≥ 0) = (1 + P(X = 0)) / 2, and P(X = 0) = Σ w_k·(1 − p)^k.
    at_zero = float(weights @ failure**failures)
    weights /= 2 * weights.sum() - at_zero
    large = weights > _NEGLIGIBLE
    return failures[large], weights[large]
