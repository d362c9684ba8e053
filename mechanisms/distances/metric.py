"""Distances between the values of a target, from noisy tables: post-processing, at no loss.

The distance of two values y, y' compares their shares at all levels x of context attributes X:
    d(y, y')² = Σ_X Σ_x (P(y | x) − P(y' | x))² / Σ_X |X|.
Negative counts are taken as 0. A level without any count gives 0 to every value and still counts in
|X|. So 0 ≤ d ≤ 1, d is symmetric and satisfies the triangle inequality. Values whose shares are
equal everywhere have distance 0.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mechanisms.model.sensitivity import Integers

Floats = NDArray[np.float64]


def embedding(tables: Sequence[Integers]) -> Floats:
    """One row of coordinates per value of the target, float64 (values, Σ|X|), at exactly these
    distances from one another.

    Args:
        tables: context attribute × target, one per context attribute, at least one; noisy.
    """
    shares = []
    for table in tables:
        clamped = np.maximum(table, 0).astype(np.float64)
        together = clamped.sum(axis=1, keepdims=True)
        shares.append(np.divide(clamped, together, out=np.zeros_like(clamped), where=together > 0))
    stacked: Floats = np.concatenate(shares, axis=0)
    return np.ascontiguousarray(stacked.T / np.sqrt(len(stacked)))


def distance_matrix(points: Floats) -> Floats:
    """Distances of all rows, (values, values): symmetric, zero diagonal, in [0, 1]."""
    matrix = np.zeros((len(points), len(points)))
    for i in range(len(points)):
        difference = points[i + 1 :] - points[i]
        matrix[i, i + 1 :] = np.sqrt(np.einsum("vd,vd->v", difference, difference))
    return np.minimum(matrix + matrix.T, 1.0)
