"""Information of one attribute about another, from noisy numbers: nothing private is read here.

Symmetric uncertainty itself is never released with noise. Replacing one record can move it from 1
to 0 for any N, so its sensitivity is 1.
"""

from collections.abc import Mapping
from fractions import Fraction
from math import log2

import numpy as np
from numpy.typing import NDArray

from mechanisms.distances.metric import Floats


def symmetric_uncertainty(h_x: float, h_y: float, h_xy: float) -> float:
    """2·I(X; Y) / (H(X) + H(Y)) in [0, 1], from three entropies; 0 if X and Y are constant."""
    total = h_x + h_y
    if total <= 0:
        return 0.0
    return min(max(2 * (total - h_xy) / total, 0.0), 1.0)


def projected(h_x: float, h_y: float, h_xy: float, x: int, y: int) -> tuple[float, float, float]:
    """Noisy entropies moved to the range of true ones; x and y are the sizes of the domains."""
    h_x, h_y = min(max(h_x, 0.0), log2(x)), min(max(h_y, 0.0), log2(y))
    return h_x, h_y, min(max(h_xy, h_x, h_y), h_x + h_y)


def entropies(counts: NDArray[np.int64]) -> tuple[float, float, float]:
    """H of the rows, of the columns and of the cells of a table; negative counts are taken as 0."""
    clamped = np.maximum(counts, 0).astype(np.float64)
    total = clamped.sum()
    if total == 0:
        return 0.0, 0.0, 0.0
    shares = clamped / total
    return entropy(shares.sum(axis=1)), entropy(shares.sum(axis=0)), entropy(shares)


def entropy(shares: Floats) -> float:
    """The entropy −Σ p·log₂p of shares p, in bits, with 0·log₂0 = 0."""
    positive = shares[shares > 0]
    return max(0.0, float(-(positive * np.log2(positive)).sum()))


def table_uncertainty(counts: NDArray[np.int64]) -> float:
    """The symmetric uncertainty of the two attributes of a table of counts."""
    return symmetric_uncertainty(*entropies(counts))


def dependency(counts: NDArray[np.int64]) -> float:
    """−H(columns | rows) of a table of counts, in bits."""
    h_x, _, h_xy = entropies(counts)
    return h_x - h_xy


def at_least_mean(scores: Mapping[int, float], threshold: Fraction) -> tuple[int, ...]:
    """The keys that score at least ``threshold`` times the mean, in order; always with the best.

    The mean is an exact rational, because the mean of three floats of 0.1 is not above 0.1.
    """
    exact = {key: Fraction(score) for key, score in scores.items()}
    mean = sum(exact.values(), Fraction(0)) / len(exact)
    best = max(exact, key=lambda key: exact[key])
    return tuple(key for key in exact if exact[key] >= threshold * mean or key == best)
