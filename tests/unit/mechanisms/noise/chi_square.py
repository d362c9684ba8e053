"""Samples against laws: Pearson's chi-square, rejected below 10⁻⁶."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from mechanisms.noise.rate import Rate

#: A test rejects a sample of the correct law with this probability.
FALSE_ALARM = 1e-6
FEWEST = 5.0


def p_value(observed: NDArray[np.int64], law: Sequence[Fraction | float]) -> float:
    """The probability that a sample is at least this far from ``law``, which sums to one."""
    expected = np.array([float(share) for share in law]) * observed.sum()
    assert math.isclose(expected.sum(), observed.sum())
    assert expected.min() >= FEWEST
    return float(chi2.sf(((observed - expected) ** 2 / expected).sum(), len(law) - 1))


def base(rate: Rate) -> Fraction:
    """p = e^−λ as a float, which is more exact than any sample can detect."""
    return Fraction(math.exp(-rate.exponent()))


def geometric_p_value(noise: NDArray[np.int64], rate: Rate) -> float:
    """Up to 256 bins of equal mass, then tails that halve, else a cut tail goes unseen."""
    lam = float(rate.exponent())
    bounds = [j / 256 for j in range(255, 0, -1)] + [2.0**-i / 256 for i in range(64)]
    edges, masses, tail = [0], [], 1.0
    for share in bounds:
        edge = math.ceil(-math.log(share) / lam)
        beyond = math.exp(-lam * edge)
        if (tail - beyond) * noise.size < FEWEST or beyond * noise.size < FEWEST:
            continue
        edges.append(edge)
        masses.append(tail - beyond)
        tail = beyond
    bins = np.searchsorted(np.array(edges, dtype=np.int64), noise, side="right") - 1
    return p_value(np.bincount(bins, minlength=len(edges)), [*masses, tail])
