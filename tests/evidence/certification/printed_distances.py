"""Distances as the paper prints them and as its code has them, for the checks to reject.

The service uses none of them. Entropies and scores use the same rounded Φ as those in use.
"""

from __future__ import annotations

from fractions import Fraction
from math import log, log2

import numpy as np

from mechanisms.clustering.encoding import Encoding
from mechanisms.clustering.lloyd import exact_sums
from mechanisms.distances.metric import Floats
from mechanisms.model.executor import Inline
from mechanisms.model.records import TableRecords


def printed_entropy_sensitivity(rows: int) -> float:
    """Theorem 5: (1/N)·(1/ln 2 + log₂N)."""
    return (1 / log(2) + log2(rows)) / rows


def printed_information_sensitivity(rows: int) -> float:
    """Theorems 6 and 7: twice the sensitivity of Theorem 5."""
    return 2 * printed_entropy_sensitivity(rows)


def context_with_exact_denominators(
    entropies: tuple[tuple[Fraction, Fraction], Fraction], p: Fraction
) -> Fraction:
    """P(both attributes are the context) in the authors' code, which adds noise only to H(X, Y).

    ``entropies`` are the exact H(X) of two attributes and H(Y), with H(X, Y) = max of them. An
    uncertainty over a denominator of 0 is 0, whatever the noise; else two discrete Laplace values
    have to agree for both to reach the mean.
    """
    (first, second), target = entropies
    if first + target == 0 and second + target == 0:
        return Fraction(1)
    if (first + target == 0) != (second + target == 0):
        raise ValueError("only tables that are alike in both attributes are worked out here")
    # Two discrete Laplace values agree with probability Σ over d of P(d)², where P(d) is (1 − p)/(1
    # + p)·p^|d|.
    return ((1 - p) / (1 + p)) ** 2 * (1 + p * p) / (1 - p * p)


def observed_shape(records: TableRecords, first: str, second: str) -> tuple[int, int]:
    """The size of a cross table of the values that occur."""
    return np.unique(records.codes[first]).size, np.unique(records.codes[second]).size


def noised_clusters(records: TableRecords, encoding: Encoding, centres: Floats) -> tuple[int, ...]:
    """The clusters that an iteration changes if it skips empty ones, which keep their centre."""
    sizes, _ = exact_sums(records, encoding, centres, Inline())
    return tuple(np.flatnonzero(sizes).tolist())
