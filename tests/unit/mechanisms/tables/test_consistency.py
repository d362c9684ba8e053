"""Adjusted cells are the least squares solution over all released numbers."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from mechanisms.tables.consistency import MeasuredMargin, adjusted


def test_the_vector_of_the_theory() -> None:
    total = MeasuredMargin((), np.array(11), 2.0)
    assert adjusted(np.array([6, 2]), 1.0, [total], 1).tolist() == [6.75, 2.75]


@pytest.mark.parametrize("shape", [(3,), (2, 4), (2, 3, 2)])
def test_it_is_the_solution_of_the_normal_equations(shape: tuple[int, ...]) -> None:
    random, cells = np.random.default_rng(1), np.prod(shape)
    numbers = np.arange(cells).reshape(shape)
    for size in range(len(shape)):
        margins, rows, goals, weights = [], [np.eye(cells)], [], [np.ones(cells)]
        values = random.normal(size=shape)
        goals.append(values.ravel())
        for axes in list(combinations(range(len(shape)), size))[:2]:
            others = tuple(axis for axis in range(len(shape)) if axis not in axes)
            summed = random.normal(size=[shape[axis] for axis in axes])
            margins.append(MeasuredMargin(axes, summed, 0.3 * (1 + size)))
            moved = np.moveaxis(numbers, others, range(-len(others), 0))
            rows += [
                np.isin(np.arange(cells), places)[None].astype(float)
                for places in moved.reshape(-1, moved.size // summed.size)
            ]
            goals.append(summed.ravel())
            weights.append(np.full(summed.size, 1 / (0.3 * (1 + size))))
        root = np.sqrt(np.concatenate(weights))
        matrix, goal = np.concatenate(rows) * root[:, None], np.concatenate(goals) * root
        expected, *_ = np.linalg.lstsq(matrix, goal, rcond=None)
        assert np.allclose(adjusted(values, 1.0, margins, len(shape)).ravel(), expected)


def test_further_axes_are_separate_tables() -> None:
    random = np.random.default_rng(2)
    values, totals = random.normal(size=(3, 2)), random.normal(size=2)
    together = adjusted(values, 1.0, [MeasuredMargin((), totals, 0.5)], 1)
    for bin in range(2):
        alone = adjusted(values[:, bin], 1.0, [MeasuredMargin((), totals[bin], 0.5)], 1)
        assert np.allclose(together[:, bin], alone)
