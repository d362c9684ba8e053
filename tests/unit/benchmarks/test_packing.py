"""The packing bound of the bench of joint selection, on degrees that are worked out by hand."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.selections.joint import packing


def test_the_bound_takes_the_best_distance() -> None:
    """The second of two has 10 edges. One outsider is lifted by 2 edges, five by 4."""
    degrees = np.array([20, 10, 9, 7, 7, 7, 7, 0])
    assert math.isclose(packing(degrees, 2), max(math.log(3) / 2, math.log(15) / 4))


def test_many_near_outsiders_ask_for_more() -> None:
    degrees = np.array([20, 10, *[9] * 50])
    assert math.isclose(packing(degrees, 2), math.log(150) / 2)
