"""The law of a sum of m independent discrete Laplace noises, and its shortest intervals.

For d ≥ 0 the sum X has P(X ≥ d) = Σ_{k=1…m} w_k · P(N_k ≥ d), where N_k is negative binomial: the
number of successes of chance p = e^−λ before the k-th failure, whose chance is q = 1 − p. The w_k
are coefficients of ((1 − u) / (1 − p² − u))^m, the factor of the generating function that is
regular at its pole. And P(N_k ≥ d) = Σ_{j<k} C(d + j − 1, j)·p^d·q^j. All terms are positive, so no
digits cancel, whatever m and λ are.

Intervals say how wide noise is; they decide no privacy. Floats are rounded towards wider ones.
"""

from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.compiled import compiled
from mechanisms.noise import discrete_laplace
from mechanisms.noise.rate import Rate

#: The relative margin for rounding errors of the tail probability. It can only widen intervals.
_MARGIN = 1e-9

Floats = NDArray[np.float64]


def tail(rate: Rate, terms: int, distance: int) -> float:
    """P(X ≥ distance) for the sum X of ``terms`` ≥ 1 noises; the distance is at least 0."""
    beyond, step = _weights_beyond(rate, terms), float(rate.exponent())
    if distance == 0:
        return float(beyond[0])
    j = np.arange(1, terms, dtype=np.float64)
    ratios = np.log((distance + j - 1) / j) + np.log(-np.expm1(-step))
    logs = np.concatenate([[0.0], np.cumsum(ratios)]) - step * distance
    return float(beyond @ np.exp(logs))


@lru_cache(maxsize=4096)
def half_width(rate: Rate, terms: int, miss: Fraction) -> int:
    """The least m at which |X| ≤ m with probability at least 1 − ``miss``, for 0 < miss < 1.

    The interval value ± m is the shortest around the released value: the law is symmetric. It is
    exact for one noise; for more it may be wider by the margin of floats.
    """
    if terms == 1:
        return discrete_laplace.half_width(rate, miss)
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


@lru_cache(maxsize=64)
def _weights_beyond(rate: Rate, terms: int) -> Floats:
    """Σ_{k > j} w_k for j = 0 … terms − 1; the first is P(X ≥ 0)."""
    step = float(rate.exponent())
    logs = _log_weights(terms, np.exp(-step), -np.expm1(-step))
    weights = np.exp(logs - logs.max())
    # The tail of the sum X of Laplace noises is a mixture with weights w_k, which are known up to a
    # factor. The factor follows from their true sum P(X ≥ 0), which is (1 + P(X = 0)) / 2 because
    # the law is symmetric. P(X = 0) is Σ w_k·q^k, with q = 1 − e^−λ.
    k = np.arange(terms, 0, -1, dtype=np.float64)
    at_zero = float(weights @ np.exp(k * np.log(-np.expm1(-step))))
    sums = np.cumsum(weights) / (2 * weights.sum() - at_zero)
    beyond: Floats = sums[::-1].copy()
    beyond.flags.writeable = False
    return beyond


@compiled
def _log_weights(terms: int, p: float, q: float) -> Floats:
    """The logarithms of w_m, w_{m−1}, …, w_1, less a common constant.

    w_{m−i} is proportional to g_i = q^i · h_i, where h_i is the coefficient of u^i. The ratio of
    two consecutive g_i follows from the differential equation of the power.
    """
    logs = np.zeros(terms)
    c = q * (1 + p)
    # The tail of a sum of Laplace noises is a mixture, whose weights are proportional to
    # coefficients g_i. ``ratio`` is the quotient g_i / g_{i−1} of two consecutive ones. All of them
    # are positive, so its logarithm exists.
    ratio = 0.0
    for i in range(terms - 1):
        back = q * (i - 1) / ratio if i > 1 else 0.0
        ratio = ((1 + c) * i + terms * p * p - back) / ((1 + p) * (i + 1))
        logs[i + 1] = logs[i] + np.log(ratio)
    return logs
