"""The law of a sum of independent discrete Laplace noises whose rates may differ.

The characteristic function of one noise of rate λ is 1 / (1 + 2v·sin²(θ/2)) with the variance
v = 2p/(1 − p)², p = e^−λ. A Fourier transform of the product gives all probabilities at once. It
wraps around beyond a distance that the sum exceeds with probability below 10⁻¹².

Where that distance is too large, all noises are written as h·X + r: X has the rate h·λ, and
|r| < h. The error is then wider, by less than h for each noise. For information: floats decide no
guarantee here.
"""

from collections.abc import Mapping
from functools import lru_cache
from math import ceil, exp, expm1

import numpy as np
from numpy.typing import NDArray

from mechanisms.noise.discrete_laplace import likely_error
from mechanisms.noise.rate import Rate

#: The most points of the Fourier transform that computes the law of a sum of noises. If the sum is
#: so wide that more would be needed, its law is computed in coarser steps.
POINTS = 1 << 18
#: Sums beyond either end of the Fourier transform are neglected. Their probability is at most e to
#: the minus this number.
_NEGLIGIBLE = 28.0
#: A margin for rounding errors, added to the required confidence. It can only raise the error
#: bound.
_MARGIN = 1e-10
#: The exponents t that are tried in Chernoff's bound on the tail of a sum, as shares of the
#: smallest noise rate. The best bound is used.
_SHARES = np.array([0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8])


def likely_sum_error(noises: Mapping[Rate, int], confidence: float) -> int:
    """The least m at which the sum of all noises lies within ±m with this probability.

    Args:
        noises: how many noises of each rate are added, at least one together.

    The error of a very wide sum is slightly larger than the least.
    """
    if len(noises) == 1:
        ((rate, count),) = noises.items()
        if count == 1:
            return likely_error(rate, confidence)
    return _likely_sum_error(frozenset(noises.items()), confidence)


@lru_cache(maxsize=1024)
def _likely_sum_error(noises: frozenset[tuple[Rate, int]], confidence: float) -> int:
    rates = {rate.a / rate.b: count for rate, count in sorted(noises, key=_numbers)}
    step, reach = 1, _reach(rates)
    while 2 * reach > POINTS:
        step *= 2
        reach = _reach({step * rate: count for rate, count in rates.items()})
    coarse = {step * rate: count for rate, count in rates.items()}
    within = np.cumsum(_two_sided(coarse, reach))
    least = int(np.searchsorted(within, confidence + _MARGIN))
    return step * least + (step - 1) * sum(rates.values())


def _numbers(noise: tuple[Rate, int]) -> tuple[int, int]:
    rate, _ = noise
    return rate.a, rate.b


def sum_probabilities(rates: Mapping[float, int], points: int) -> NDArray[np.float64]:
    """P(sum = 0), P(sum = 1), …, P(sum = points / 2), shape (points / 2 + 1,).

    Args:
        rates: how many noises of each rate are added.
        points: the length of the Fourier transform, even. The probability of a sum includes that of
            all sums which differ from it by a multiple of ``points``.
    """
    angles = np.arange(points // 2 + 1) * (np.pi / points)
    squares = 2 * np.sin(angles) ** 2
    logarithm = np.zeros_like(angles)
    for rate, count in rates.items():
        logarithm -= count * np.log1p(_variance(rate) * squares)
    probabilities: NDArray[np.float64] = np.fft.irfft(np.exp(logarithm), points)
    return np.maximum(probabilities[: points // 2 + 1], 0)


def _two_sided(rates: Mapping[float, int], reach: int) -> NDArray[np.float64]:
    """P(|sum| = 0), P(|sum| = 1), … up to a distance of at least ``reach``."""
    points = 1 << max(2 * reach - 1, 8).bit_length()
    law = sum_probabilities(rates, points)
    law[1:] *= 2
    return law


def _reach(rates: Mapping[float, int]) -> int:
    """A distance that |sum| exceeds with a negligible probability, by an exponential bound."""
    rate, t = np.array(list(rates)), min(rates) * _SHARES[:, None]
    # Chernoff's bound on the tail of a sum of noises multiplies the moments E(e^{tX}) of all noises
    # X. One is (1 − p)² / ((1 − p·e^t)(1 − p·e^−t)), with p = e^−rate.
    logarithms = 2 * np.log(-np.expm1(-rate))
    logarithms = logarithms - np.log(-np.expm1(t - rate)) - np.log(-np.expm1(-t - rate))
    moments = logarithms @ np.array(list(rates.values()))
    return ceil(float(((moments + _NEGLIGIBLE) / t[:, 0]).min())) + 1


def _variance(rate: float) -> float:
    return 2 * exp(-rate) / expm1(-rate) ** 2
