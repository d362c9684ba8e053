"""Many selections at once: the kernels of production in compiled loops over rows of scores.

A single draw through ``Selector.top`` takes 50 to 100 microseconds, most of it a fresh keystream;
here a million take less than a second. Kernels, words and ties are the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.compiled import compiled
from mechanisms.model.executor import Inline
from mechanisms.model.randomness import Randomness, Words
from mechanisms.noise.addition import Integers, add_noise
from mechanisms.noise.geometric import add_geometric
from mechanisms.noise.order import partition, shuffle_front
from mechanisms.noise.race import arrivals
from mechanisms.noise.rate import Rate


def noisy_rows(
    scores: Sequence[int] | Integers, rate: Rate, rows: int, randomness: Randomness
) -> Integers:
    """``rows`` noisy vectors, shape (rows, n)."""
    tiled = np.tile(np.array(scores, dtype=np.int64), rows)
    noisy = add_noise(add_geometric, tiled, rate, randomness, Inline())
    return noisy.reshape(rows, -1)


def noisy_max_winners(noisy: Integers, randomness: Randomness) -> Integers:
    """The largest of every row, ties uniform."""
    words = randomness.stream().words(8 * len(noisy))
    winners = np.empty(len(noisy), dtype=np.int64)
    assert _winners(noisy, words, winners) >= 0
    return winners


def race_winners(
    scores: Sequence[int] | Integers, rate: Rate, rows: int, randomness: Randomness
) -> Integers:
    """The first to arrive in each of ``rows`` races."""
    tiled = np.tile(np.array(scores, dtype=np.int64), rows)
    words = randomness.stream().words(tiled.size)
    low, high = brackets(tiled, rate, words)
    low, high = low.reshape(rows, -1), high.reshape(rows, -1)
    winners = high.argmin(axis=1)
    # No bracket of any row overlaps the winner's: there is nothing to refine.
    assert ((low <= high.min(axis=1, keepdims=True)).sum(axis=1) == 1).all()
    return winners


def brackets(
    scores: Integers, rate: Rate, words: Words, widen: float = 1.0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Rigorous bounds on the arrival of every candidate for these words."""
    low, high = np.empty(scores.size), np.empty(scores.size)
    shift = rate.a / rate.b * (scores.max() - scores).astype(np.float64)
    arrivals(shift, shift, widen, words, low, high)
    assert not any(map(math.isnan, (low.sum(), high.sum())))
    return low, high


@compiled
def _winners(noisy: Integers, words: Words, winners: Integers) -> int:
    above = np.empty(noisy.shape[1], dtype=np.int64)
    tied = np.empty(noisy.shape[1], dtype=np.int64)
    at = 0
    for row in range(noisy.shape[0]):
        _, ties = partition(noisy[row], noisy[row].max(), above, tied)
        used = shuffle_front(tied[:ties], 1, words[at:])
        if used < 0:
            return used
        at += used
        winners[row] = tied[0]
    return at
