"""The exponential mechanism as a race that is refined only where arrivals are close.

Candidate i arrives at tᵢ = ln(−ln(1 − uᵢ)) + λ(max s − sᵢ), uᵢ uniform on (0, 1): an exponential
variable of rate ∝ e^{λ·sᵢ}, in logarithms. The first arrival is drawn ∝ e^{λ·sᵢ}. The first k, in
order, are k such draws without replacement.

64 bits of every uᵢ are drawn, and tᵢ is computed in floats *with a bracket that contains it*.
Separate brackets decide the order; for overlapping ones, more bits are appended and the arrivals
are recomputed in interval arithmetic. The answer is a function of the infinite bit strings alone,
so the law is exact: no float decides it. The bracket assumes that logarithms err by at most 2⁻⁵⁰ of
their value; libraries err far less.

The work is the same for all scores, except for refinements, of probability about n·2⁻⁴⁰.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.compiled import compiled
from mechanisms.model.executor import Executor
from mechanisms.model.randomness import Randomness, Words, WordSource
from mechanisms.noise.addition import Integers, parts
from mechanisms.noise.order import kth_largest
from mechanisms.noise.rate import Rate
from mechanisms.noise.refinement import Arrival, first_in_order

Floats = NDArray[np.float64]

_HALF = np.uint64(1 << 63)
_EXTREME = np.uint64(4096)
_UNIT = 2.0**-64
_GRID, _LOGARITHM = 2.0**-63, 2.0**-48
#: A bound on the relative error of each product, quotient, sum or logarithm in an arrival time.
_SHIFT = 2.0**-50
_BLOCK = 1 << 14
_PAYLOAD = (1 << 63) - 1


def race(
    scores: Integers,
    k: int,
    rate: Rate,
    randomness: Randomness,
    executor: Executor,
    *,
    widen: float = 1.0,
) -> Integers:
    """Indices of k candidates drawn without replacement, each ∝ e^{λ·score}, shape (k,).

    Args:
        scores: private whole numbers, shape (n,), n ≥ k ≥ 1; |score| < 2⁶² by public bounds.
        k: the number of candidates, in the order drawn.
        rate: ``Rate.of(E, q, k)`` for scores of sensitivity 2^q in any directions.
        widen: factor ≥ 1 on every bracket; it changes the work, never the answer's law.

    Privacy: ε-DP, as k draws of the exponential mechanism at ε/k each.
    Source: McSherry and Talwar 2007, Theorem 6; Yellott 1977 for the order (Plackett–Luce).
    """
    best = scores.max()
    pieces = parts(scores.size, executor)
    words = np.empty(scores.size, dtype=np.uint64)
    low, high = np.empty(scores.size), np.empty(scores.size)

    def part(job: tuple[int, int, WordSource]) -> None:
        start, stop, source = job
        for i in range(start, stop, _BLOCK):
            here = slice(i, min(i + _BLOCK, stop))
            words[here] = source.words(here.stop - i)
            shift = rate.a / rate.b * (best - scores[here]).astype(np.float64)
            arrivals(shift, shift, widen, words[here], low[here], high[here])

    def arrival(i: int) -> Arrival:
        gap = int(best) - int(scores[i])
        return Arrival(i, gap, int(words[i]), 64, float(low[i]), float(high[i]))

    executor.map(part, [(*piece, randomness.stream()) for piece in pieces])
    return _first(low, high, k, arrival, rate, randomness)


def weighted_race(
    weights: Integers,
    rate: Rate,
    randomness: Randomness,
    *,
    tail: bool = False,
    widen: float = 1.0,
) -> int:
    """The distance of the winning group: d is drawn ∝ weights[d]·e^{−λ·d}.

    A group of w equal candidates at distance g arrives as one candidate, earlier by ln w.

    Args:
        weights: private whole numbers ≥ 0, shape (n,), n ≥ 1, one per distance; not all zero.
        rate: λ per step of distance.
        tail: True if every distance from n − 1 on, without end, has the last weight.
        widen: as in ``race``.
    """
    gaps, occupied = np.arange(weights.size), weights > 0
    counts = np.maximum(weights, 1)
    last = weights.size - 1
    moved = np.asarray(rate.a / rate.b * gaps, np.float64)
    size = np.asarray(np.log(counts), np.float64)
    shift, magnitude = moved - size, moved + size
    if tail:
        beyond = float(np.log(-np.expm1(-rate.a / rate.b)))
        shift[-1] += beyond
        # The rounding error of 1 − e^−λ may be that of a number of size one. So one is added to
        # ``magnitude``, which bounds the error of the shift.
        magnitude[-1] += 1 - beyond
    words = randomness.stream().words(gaps.size)
    low, high = np.empty(gaps.size), np.empty(gaps.size)
    arrivals(shift, magnitude, widen, words, low, high)
    # A group without candidates consumes a random word too, so that the run time does not reveal
    # how many such groups there are. It never arrives.
    low, high = np.where(occupied, low, np.inf), np.where(occupied, high, np.inf)

    def arrival(i: int) -> Arrival:
        ends = float(low[i]), float(high[i])
        return Arrival(i, i, int(words[i]), 64, *ends, int(counts[i]), tail and i == last)

    return int(_first(low, high, 1, arrival, rate, randomness)[0])


def _first(
    low: Floats,
    high: Floats,
    k: int,
    arrival: Callable[[int], Arrival],
    rate: Rate,
    randomness: Randomness,
) -> Integers:
    """The first k to arrive, in order; ``arrival`` describes those that need refinement."""
    # A low end of infinity marks a group that never arrives. All others have a low end below
    # infinity, even if their high end is infinite.
    contenders = np.flatnonzero((low <= kth_smallest(high, k)) & (low < np.inf))
    order = contenders[np.argsort(low[contenders], kind="stable")]
    if separated(low[order], high[order], k):
        return order[:k].astype(np.int64)
    close = [arrival(i) for i in order.tolist()]
    return np.array(first_in_order(close, k, rate, randomness.stream()), dtype=np.int64)


def separated(low: Floats, high: Floats, k: int) -> bool:
    """True if the brackets, sorted by their low ends, determine the order of the first k."""
    return bool((high[:k][: low.size - 1] < low[1 : k + 1]).all())


def kth_smallest(values: Floats, k: int) -> float:
    """The k-th smallest, in work that does not depend on the values; none may be NaN."""
    if k == 1:
        return float(values.min())
    # Read as integers, the bits of positive floats have the order of the floats. Those of negative
    # floats have the reverse order.
    keys = _turned((values + 0.0).view(np.int64))
    key = np.array([~kth_largest(~keys, k)], dtype=np.int64)
    return float(_turned(key).view(np.float64)[0])


def _turned(bits: Integers) -> Integers:
    """Inverts the lower bits of negative numbers, with no branch on the sign; its own inverse."""
    turned: Integers = bits ^ ((bits >> 63) & _PAYLOAD)
    return turned


@compiled
def arrivals(
    shift: Floats, magnitude: Floats, widen: float, words: Words, low: Floats, high: Floats
) -> None:
    """Brackets low ≤ tᵢ ≤ high of the arrivals for the bits uᵢ in ``words``; may be infinite.

    ``shift`` is added to every start; ``magnitude`` bounds the sum of its terms' absolute values.
    """
    for i in range(shift.size):
        logarithm, error = start(words[i])
        error += _SHIFT * magnitude[i]
        low[i] = logarithm + shift[i] - widen * error
        high[i] = logarithm + shift[i] + widen * error


@compiled
def start(word: np.uint64) -> tuple[float, float]:
    """ln(−ln(1 − u)) for the 64 bits of u in ``word``, and its error: infinite for u near 0, 1."""
    if word < _HALF:
        tail = word
        v = (np.float64(word) + 0.5) * _UNIT
        exponential = -math.log1p(-v)
        slope = 1.0 / v
    else:
        tail = ~word
        v = (np.float64(tail) + 0.5) * _UNIT
        exponential = -math.log(v)
        slope = 1.0 / (v * exponential)
    logarithm = math.log(exponential)
    error: float = _GRID * slope + _LOGARITHM * (1.0 + abs(logarithm))
    if tail < _EXTREME:
        error = math.inf
    return logarithm, error
