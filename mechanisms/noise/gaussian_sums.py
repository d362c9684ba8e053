"""The law of a sum of independent discrete Gaussian noises, and its shortest intervals.

One noise has its exact law. Where all σ ≥ 2, the ratio between the law of a sum of m noises and
that of one noise of Σσ² is within 10·m·e^(−39) of 1 (Kairouz, Liu, Steinke 2021, section 4); below,
laws are convolved. Beyond σ√m = 1024 tails are those of the normal law, half a step nearer to 0.

Intervals say how wide noise is; they decide no privacy. Floats are rounded towards wider ones.
"""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from math import ceil, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from mechanisms.noise.discrete_gaussian import Deviation

#: The relative margin for errors of a tail probability. Intervals are as wide as if the tail were
#: this much larger.
_MARGIN = 1e-6
#: If the standard deviation of a sum of noises exceeds this, the tails of the normal law replace
#: the exact ones. At usual confidences both differ by less than ``_MARGIN``.
_SMOOTH = 1024
#: The probabilities of a noise law are listed up to this many standard deviations from 0. Beyond
#: them lies a probability below 10⁻⁴⁰.
_REACH = 14
#: The public work of a query, the bound on its steps, counts a probability of a noise law as this
#: many steps if a Fourier transform computes it, and as one if a formula does.
_CONVOLUTION = 8
#: The most probabilities of a noise law that a formula lists: those at the largest standard
#: deviation for which exact tails are used.
MOST_PLACES = 2 * _REACH * _SMOOTH + 5

Floats = NDArray[np.float64]


@lru_cache(maxsize=4096)
def half_width(deviation: Deviation, terms: int, miss: Fraction) -> int:
    """The least m at which |X| ≤ m with probability at least 1 − ``miss``, for 0 < miss < 1.

    X is the sum of ``terms`` ≥ 1 noises. The interval value ± m is the shortest around the released
    value, because the law is symmetric and falls away from 0.
    """
    spread = sqrt(float(deviation.square * terms))
    return _wide(spread, miss) if spread > _SMOOTH else _within(tails(deviation, terms), miss)


def sum_half_width(noises: Mapping[Deviation, int], miss: Fraction) -> int:
    """The same for a sum of noises of several deviations, with the number of noises of each."""
    if len(noises) == 1:
        ((deviation, terms),) = noises.items()
        return half_width(deviation, terms, miss)
    return _sum_half_width(frozenset(noises.items()), miss)


@lru_cache(maxsize=1024)
def _sum_half_width(noises: frozenset[tuple[Deviation, int]], miss: Fraction) -> int:
    square = float(sum(deviation.square * terms for deviation, terms in noises))
    if sqrt(square) > _SMOOTH:
        return _wide(sqrt(square), miss)
    if all(deviation.square >= 4 for deviation, _ in noises):
        return _within(_tails_of(_law(square)), miss)
    return _within(_tails_of(_convolved(noises)), miss)


def _wide(spread: float, miss: Fraction) -> int:
    return max(0, ceil(-NormalDist().inv_cdf(_enough(miss)) * spread - 0.5))


def _within(beyond: Floats, miss: Fraction) -> int:
    # The tail probability falls with the distance. So a binary search finds the least distance at
    # which it is small enough.
    return int(np.searchsorted(-beyond[1:], -_enough(miss), side="left"))


def _enough(miss: Fraction) -> float:
    return float(miss) * (1 - _MARGIN) / 2


@lru_cache(maxsize=256)
def tails(deviation: Deviation, terms: int) -> Floats:
    """P(X ≥ d) for d = 0, 1, … up to where it is 0 in doubles; σ√m is at most 1024."""
    if terms > 1 and deviation.square < 4:
        return _tails_of(_convolved([(deviation, terms)]))
    return _tails_of(_law(float(deviation.square * terms)))


def _tails_of(law: Floats) -> Floats:
    result: Floats = np.append(law[len(law) // 2 :][::-1].cumsum()[::-1], 0.0)
    result.flags.writeable = False
    return result


def places(deviation: Deviation, terms: int) -> int:
    """The most work of ``half_width``, in places of the laws that it writes down."""
    spread = sqrt(float(deviation.square * terms))
    if spread > _SMOOTH:
        return 1
    if terms > 1 and deviation.square < 4:
        reach = int(_REACH * spread) + _REACH
        return _CONVOLUTION << (2 * reach).bit_length()
    return 2 * int(_REACH * spread) + 5


def variance(deviation: Deviation) -> float:
    """The variance of one noise; never less than 10⁻¹², so that it can weigh."""
    square = float(deviation.square)
    if square >= 4:
        # For σ ≥ 2 discrete Gaussian noise has the variance σ², up to a factor of 1 − 10⁻³².
        return square
    law = _law(square)
    places = np.arange(len(law)) - len(law) // 2
    return max(float(law @ places**2), 1e-12)


def _law(square: float) -> Floats:
    """The masses of one noise of this σ², on −r … r."""
    reach = int(_REACH * sqrt(square)) + 2
    masses = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * square))
    law: Floats = masses / masses.sum()
    return law


def _convolved(noises: Iterable[tuple[Deviation, int]]) -> Floats:
    """The masses of the sum, on −r … r, by the product of the transforms of all noises."""
    noises = list(noises)
    square = float(sum(deviation.square * terms for deviation, terms in noises))
    reach = int(_REACH * sqrt(square)) + _REACH
    size = 1 << (2 * reach).bit_length()  # The Fourier transform is fastest for powers of 2.
    product = np.ones(size // 2 + 1, dtype=complex)
    for deviation, terms in noises:
        one, circle = _law(float(deviation.square)), np.zeros(size)
        # The Fourier transform treats the array as a circle: the probability of noise d is at index
        # d modulo its length. The array is so long that the sum wraps around with a probability
        # below 10⁻⁴⁰.
        np.add.at(circle, np.arange(len(one)) - len(one) // 2, one)
        product *= np.fft.rfft(circle) ** terms
    return np.maximum(np.fft.fftshift(np.fft.irfft(product, size)), 0)
