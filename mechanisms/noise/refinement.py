"""Refines arrivals that floats cannot order: more bits and interval arithmetic until they part.

The choice of refined candidates depends on private scores, but the law does not. Every candidate
owns an infinite string of random bits, and refinement only reads more of it.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from mechanisms.model.randomness import WordSource
from mechanisms.noise.intervals import bounds
from mechanisms.noise.rate import Rate

Bound = Fraction | float
_WORD = 64


@dataclass(frozen=True, slots=True)
class Arrival:
    """The arrival time t of candidate ``index``, whose score is ``gap`` below the best.

    t follows from a uniform u in [bits, bits + 1] / 2^length and lies in [low, high], whose ends
    may be infinite. ``weight`` ≥ 1 equal candidates that arrive as one take ln(weight) off t. With
    ``tail``, as many candidates follow at every further gap: −ln(1 − e^−λ) is taken off t.
    """

    index: int
    gap: int
    bits: int
    length: int
    low: Bound
    high: Bound
    weight: int = 1
    tail: bool = False


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
    length = arrival.length + _WORD
    low = _arrival_at(bits, length, arrival, rate)[0]
    high = _arrival_at(bits + 1, length, arrival, rate)[1]
    return replace(arrival, bits=bits, length=length, low=low, high=high)


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


def _arrival_at(numerator: int, length: int, arrival: Arrival, rate: Rate) -> tuple[Bound, Bound]:
    """An interval that contains t for u = numerator / 2^length, including ``weight`` and ``tail``.

    t = ln(−ln(1 − u)) + λ·gap, less the terms of ``weight`` and ``tail``; it rises with u.
    """
    from mpmath.ctx_iv import MPIntervalContext

    if numerator == 0:
        return -math.inf, -math.inf
    if numerator == 1 << length:
        return math.inf, math.inf
    # A separate context, because all threads share the precision of the global one.
    iv: Any = MPIntervalContext()
    # Both parts of an arrival time, 1 − u and λ·gap, are quotients of exact integers. The precision
    # has room for all their bits.
    shift = rate.a * arrival.gap
    iv.prec = 2 * length + shift.bit_length() + arrival.weight.bit_length() + _WORD
    whole = 1 << length
    time = iv.log(iv.log(iv.mpf(whole) / (whole - numerator)))
    time += iv.mpf(shift) / rate.b
    if arrival.weight > 1:
        time -= iv.log(iv.mpf(arrival.weight))
    if arrival.tail:
        time += iv.log(1 - iv.exp(-iv.mpf(rate.a) / rate.b))
    return bounds(time)
