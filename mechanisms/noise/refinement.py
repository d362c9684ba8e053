"""Refines arrivals that floats cannot order: more bits and interval arithmetic until they part.

The choice of refined candidates depends on private scores, but the law does not. Every candidate
owns an infinite string of random bits, and refinement only reads more of it.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from mechanisms.model.randomness import WordSource
from mechanisms.noise.intervals import bounds, intervals
from mechanisms.noise.rate import Rate

Bound = Fraction | float
_WORD = 64


@dataclass(frozen=True, slots=True)
class Arrival:
    """The arrival time t of candidate ``index``, whose score is ``gap`` below the best.

    t = λ·gap + ln E with ``gumbel``, and λ·gap − E without, for E = −ln u. The uniform u lies in
    [bits, bits + 1] / 2^length, and t in [low, high], whose ends may be infinite. ``weight`` ≥ 1
    equal candidates that arrive as one take ln(weight) off t. With ``tail``, as many candidates
    follow at every further gap: −ln(1 − e^−λ) is taken off t. Both are for ``gumbel`` alone.
    """

    index: int
    gap: int
    bits: int
    length: int
    low: Bound
    high: Bound
    weight: int = 1
    tail: bool = False
    gumbel: bool = True


def first_in_order(arrivals: list[Arrival], k: int, rate: Rate, source: WordSource) -> list[int]:
    """The indices of the first k arrivals, in order; ends with probability one."""
    while True:
        arrivals = sorted(arrivals, key=lambda arrival: arrival.low)
        close = _undecided(arrivals, k)
        if not close:
            return [arrival.index for arrival in arrivals[:k]]
        arrivals = [
            refined(arrival, rate, source) if place in close else arrival
            for place, arrival in enumerate(arrivals)
        ]


def refined(arrival: Arrival, rate: Rate, source: WordSource) -> Arrival:
    """The same arrival with 64 more bits read and its bracket narrowed to them."""
    bits = arrival.bits << _WORD | int(source.words(1)[0])
    longer = replace(arrival, bits=bits, length=arrival.length + _WORD)
    low, high = _bracket(longer, rate)
    return replace(longer, low=low, high=high)


def _undecided(arrivals: list[Arrival], k: int) -> set[int]:
    """The positions of arrivals, sorted by low ends, whose relevant order is still unknown.

    These are the overlapping groups that begin among the first k.
    """
    groups: list[list[int]] = []
    reach: Bound = -math.inf
    for place, arrival in enumerate(arrivals):
        if groups and arrival.low <= reach:
            groups[-1].append(place)
        else:
            groups.append([place])
        reach = max(reach, arrival.high)
    return {place for group in groups if group[0] < k and len(group) > 1 for place in group}


def _bracket(arrival: Arrival, rate: Rate) -> tuple[Bound, Bound]:
    """An interval that contains t for every u with the bits that are known."""
    bits, whole = arrival.bits, 1 << arrival.length
    if bits == 0 or bits + 1 == whole:
        return -math.inf, math.inf
    # The arrival time of a candidate is computed from two fractions: the uniform number u, and the
    # shift λ·gap, its part without randomness. The interval arithmetic has room for all bits of
    # their numerators and denominators.
    shift = rate.a * arrival.gap
    iv = intervals(2 * arrival.length + shift.bit_length() + arrival.weight.bit_length() + _WORD)
    time = iv.log(iv.mpf([bits, bits + 1]) / whole)
    if arrival.gumbel:
        time = iv.log(-time)
    time += iv.mpf(shift) / rate.b
    if arrival.weight > 1:
        time -= iv.log(iv.mpf(arrival.weight))
    if arrival.tail:
        time += iv.log(1 - iv.exp(-iv.mpf(rate.a) / rate.b))
    return bounds(time)
