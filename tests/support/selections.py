"""Many selections at once: the kernels of production in compiled loops over rows of scores.

A single draw through ``Selector.top`` takes 50 to 100 microseconds, most of it a fresh keystream;
here a million take less than a second. Kernels and words are the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mechanisms.model.randomness import Randomness, Words
from mechanisms.noise.addition import Integers
from mechanisms.noise.arrivals import bounds_of_arrivals
from mechanisms.noise.rate import Rate


def noisy_max_winners(
    scores: Sequence[int] | Integers, rate: Rate, rows: int, randomness: Randomness
) -> Integers:
    """The candidate of the largest noisy score in each of ``rows`` draws."""
    return _first(scores, rate, rows, randomness, gumbel=False)


def race_winners(
    scores: Sequence[int] | Integers, rate: Rate, rows: int, randomness: Randomness
) -> Integers:
    """The first to arrive in each of ``rows`` races."""
    return _first(scores, rate, rows, randomness, gumbel=True)


def _first(
    scores: Sequence[int] | Integers, rate: Rate, rows: int, randomness: Randomness, gumbel: bool
) -> Integers:
    tiled = np.tile(np.array(scores, dtype=np.int64), rows)
    words = randomness.stream().words(tiled.size)
    low, high = brackets(tiled, rate, words, gumbel=gumbel)
    low, high = low.reshape(rows, -1), high.reshape(rows, -1)
    winners = high.argmin(axis=1)
    # Random bits bound the arrival of each candidate from below and from above, and the earliest
    # wins. In every row, which is one draw, no other candidate's lower bound is below the winner's
    # upper bound, so no bounds need more bits.
    assert ((low <= high.min(axis=1, keepdims=True)).sum(axis=1) == 1).all()
    return winners


def brackets(
    scores: Integers, rate: Rate, words: Words, widen: float = 1.0, gumbel: bool = True
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Rigorous bounds on the arrival of every candidate for these words."""
    low, high = np.empty(scores.size), np.empty(scores.size)
    shift = rate.a / rate.b * (scores.max() - scores).astype(np.float64)
    for upper, bounds in ((False, low), (True, high)):
        bounds_of_arrivals(shift, shift, gumbel, upper, widen, words, bounds)
        assert not math.isnan(bounds.sum())
    return low, high
