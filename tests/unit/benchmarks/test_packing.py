"""The packing bound of the bench of joint selection, on degrees that are worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.selections.joint import crossing, most_recall, packing


def test_the_bound_takes_the_best_distance() -> None:
    """The second of two has 10 edges. One outsider is lifted by 2 edges, five by 4."""
    degrees = np.array([20, 10, 9, 7, 7, 7, 7, 0])
    assert math.isclose(packing(degrees, 2), max(math.log(3) / 2, math.log(15) / 4))


def test_many_near_outsiders_ask_for_more() -> None:
    degrees = np.array([20, 10, *[9] * 50])
    assert math.isclose(packing(degrees, 2), math.log(150) / 2)


@pytest.mark.parametrize("k", [1, 2])
def test_the_most_recall_at_the_bound_is_that_of_the_bound(k: int) -> None:
    degrees = np.array([20, 10, 9, 7, 7, 7, 7, 0])
    assert math.isclose(most_recall(degrees, k, packing(degrees, k)), 1 - 1 / (4 * k))
    assert math.isclose(most_recall(degrees, k, 1e6), 1.0)


def test_recalls_cross_on_a_line_over_the_logarithm() -> None:
    assert crossing([1.0, 4.0, 16.0], [0.0, 0.5, 1.0], 0.75) == pytest.approx(8.0)
    # The last time counts, because recalls are sampled.
    assert crossing([1.0, 4.0, 16.0], [0.9, 0.5, 1.0], 0.75) == pytest.approx(8.0)
    assert crossing([1.0, 4.0], [0.8, 0.9], 0.75) == 1.0
    assert crossing([1.0, 4.0], [0.8, 0.7], 0.75) is None
