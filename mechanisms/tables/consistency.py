"""Cells that agree with measured margins: weighted least squares over all released numbers.

Post-processing: it reads released numbers and public variances alone, so it costs no loss.

The cells x of least Σ(x − y)²/v + Σ_B Σ(margin_B(x) − t_B)²/v_B have a closed form. A function on
the cells is a sum of orthogonal effects, one per set A of axes: each depends on its axes alone and
averages to 0 along each of them. A margin over the axes B multiplies the effects within B by the
number m_B of cells of one margin cell, and drops the others. So with the right-hand side
r = y/v + Σ_B lift(t_B)/v_B, where lift copies a margin's number to each of its cells, the effect A
of the solution is the effect A of r divided by 1/v + Σ_{B ⊇ A} m_B/v_B.
"""

from collections.abc import Sequence
from itertools import combinations
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class MeasuredMargin(NamedTuple):
    """A released margin over these axes of the table, which ascend, and its variance."""

    axes: tuple[int, ...]
    values: NDArray[Any]
    variance: float


def adjusted(
    cells: NDArray[Any], variance: float, margins: Sequence[MeasuredMargin], dimensions: int
) -> Floats:
    """The cells that fit all released numbers best, in the shape of ``cells``.

    Args:
        cells: noisy numbers over ``dimensions`` axes; further axes, such as the bins of a
            histogram, are separate tables.
        variance: of each of the cells, like those of the margins > 0.
    """
    shape = cells.shape[:dimensions]
    weights = [1 / one.variance for one in margins]
    own = 1 / variance
    right: Floats = cells * own
    for one, weight in zip(margins, weights, strict=True):
        lifted = [1 if axis not in one.axes else shape[axis] for axis in range(dimensions)]
        right = right + one.values.reshape(*lifted, *cells.shape[dimensions:]) * weight

    result = np.zeros(cells.shape)
    for effect, part in _effects(right, dimensions):
        divisor = own + sum(
            weight * prod(shape[axis] for axis in range(dimensions) if axis not in one.axes)
            for one, weight in zip(margins, weights, strict=True)
            if set(effect) <= set(one.axes)
        )
        result += part / divisor
    return result


def _effects(table: Floats, dimensions: int) -> list[tuple[tuple[int, ...], Floats]]:
    """The effects of a table, each with its axes; averaged axes have length 1."""
    effects = []
    for size in range(dimensions + 1):
        for axes in combinations(range(dimensions), size):
            part = table
            for axis in range(dimensions):
                average = part.mean(axis=axis, keepdims=True)
                part = part - average if axis in axes else average
            effects.append((axes, part))
    return effects
