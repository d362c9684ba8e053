"""A race of groups: group i, of ``weight`` w equal candidates at distance g, wins ∝ w·e^{−λ·g}.

It is the race of ``mechanisms.noise.race`` with ln w taken off each arrival, and equally exact:
brackets contain the arrivals, and overlapping brackets get more bits. The last group may represent
an endless tail of groups of its weight, at its distance and all further ones.
"""

from __future__ import annotations

import numpy as np

from mechanisms.kernels.compiled import compiled
from mechanisms.model.randomness import Randomness, Words
from mechanisms.noise.addition import Integers
from mechanisms.noise.race import Floats, separated, start
from mechanisms.noise.rate import Rate
from mechanisms.noise.refinement import Arrival, first_in_order

_SHIFT = 2.0**-50


def weighted_race(
    weights: Integers,
    rate: Rate,
    randomness: Randomness,
    *,
    tail: bool = False,
    widen: float = 1.0,
) -> int:
    """The distance of the winning group: d is drawn ∝ weights[d]·e^{−λ·d}.

    Args:
        weights: private whole numbers ≥ 0, shape (n,), n ≥ 1, one per distance; not all zero.
        rate: λ per step of distance.
        tail: True if the last weight is that of each distance from n − 1 on.
        widen: factor ≥ 1 on every bracket; it changes the work, never the law.
    """
    gaps = np.flatnonzero(weights)
    counts = weights[gaps]
    last = weights.size - 1
    moved = np.asarray(rate.a / rate.b * gaps, np.float64)
    size = np.asarray(np.log(counts), np.float64)
    shift, magnitude = moved - size, moved + size
    if tail and gaps[-1] == last:
        beyond = float(np.log(-np.expm1(-rate.a / rate.b)))
        shift[-1] += beyond
        # Its own error, of e^−λ beside one, counts as the error of a number of size one.
        magnitude[-1] += 1 - beyond
    words = randomness.stream().words(gaps.size)
    low, high = np.empty(gaps.size), np.empty(gaps.size)
    weighted_arrivals(shift, magnitude, widen, words, low, high)
    contenders = np.flatnonzero(low <= high.min())
    order = contenders[np.argsort(low[contenders], kind="stable")]
    if separated(low[order], high[order], 1):
        return int(gaps[order[0]])
    close = [
        Arrival(
            int(gaps[i]),
            int(gaps[i]),
            int(words[i]),
            64,
            float(low[i]),
            float(high[i]),
            int(counts[i]),
            tail and int(gaps[i]) == last,
        )
        for i in order.tolist()
    ]
    return first_in_order(close, 1, rate, randomness.stream())[0]


@compiled
def weighted_arrivals(
    shift: Floats, magnitude: Floats, widen: float, words: Words, low: Floats, high: Floats
) -> None:
    """Brackets of the arrivals; ``magnitude`` bounds the terms of the sum ``shift``."""
    for i in range(shift.size):
        logarithm, error = start(words[i])
        error += _SHIFT * magnitude[i]
        low[i] = logarithm + shift[i] - widen * error
        high[i] = logarithm + shift[i] + widen * error
