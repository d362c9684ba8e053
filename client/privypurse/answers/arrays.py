"""Matrices as NumPy arrays if NumPy is installed, otherwise as lists of lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

#: ``numpy.ndarray`` of floats, or ``list[list[float]]``; both are indexed as ``matrix[i][j]``.
Matrix = Any


def matrix(rows: Sequence[Sequence[float]]) -> Matrix:
    """Convert ``rows`` to a NumPy array, or to lists if NumPy is not installed."""
    try:
        import numpy
    except ImportError:
        return [list(row) for row in rows]
    return numpy.array(rows, dtype=float)
