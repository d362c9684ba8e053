"""Selection as a race that is refined only where arrivals are close.

Candidate i arrives at tᵢ, and the first arrivals are drawn. Let gap be max s − sᵢ, and Eᵢ = −ln uᵢ
an exponential variable, uᵢ uniform on (0, 1). Then

* tᵢ = λ·gap + ln Eᵢ is the logarithm of an exponential variable of rate ∝ e^{λ·sᵢ}. The first is
  drawn ∝ e^{λ·sᵢ}; the first k, in order, are k such draws without replacement.
* tᵢ = λ·gap − Eᵢ is noisy max with exponential noise, which is permute-and-flip (``noisy_max``).

64 bits of every uᵢ are drawn, and tᵢ is computed in floats *with a bracket that contains it*.
Separate brackets decide the order; for overlapping ones, more bits of the same uᵢ are appended and
the arrivals are recomputed in interval arithmetic. The answer is a function of the infinite bit
strings alone, so the law is exact: no float decides it. Danger: never draw bits anew instead.

The work is the same for all scores, except for refinements, of probability about k·2⁻⁴⁰ + n·2⁻⁵⁰.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from mechanisms.model.executor import Executor
from mechanisms.model.randomness import Randomness, Words, WordSource
from mechanisms.noise.addition import Integers, parts
from mechanisms.noise.arrivals import Floats, bounds_of_arrivals
from mechanisms.noise.order import kth_largest
from mechanisms.noise.rate import Rate
from mechanisms.noise.refinement import Arrival, first_in_order

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
    return first_to_arrive(scores, k, rate, randomness, executor, gumbel=True, widen=widen)


def race_of_rows(
    scores: Integers, rate: Rate, randomness: Randomness, *, widen: float = 1.0
) -> Integers:
    """The column that each row of ``scores`` (m, n) draws by a race of its own, shape (m,).

    Privacy: that of ``race`` for one candidate, for each row.
    """
    return first_of_rows(scores, rate, randomness, gumbel=True, widen=widen)


def first_to_arrive(
    scores: Integers,
    k: int,
    rate: Rate,
    randomness: Randomness,
    executor: Executor,
    *,
    gumbel: bool,
    widen: float,
) -> Integers:
    """The first k to arrive, in order; with ``gumbel`` at λ·gap + ln E, without at λ·gap − E."""
    words = np.empty(scores.size, dtype=np.uint64)
    runners = _Candidates(words, gumbel, widen, int(scores.max()) - scores, rate)
    low = np.empty(scores.size) if k > 1 or scores.size <= _BLOCK else None

    def part(job: tuple[int, int, WordSource]) -> list[tuple[float, int, int]]:
        first, last, source = job
        blocks = []
        for start in range(first, last, _BLOCK):
            here = slice(start, min(start + _BLOCK, last))
            words[here] = source.words(here.stop - start)
            bounds = runners.bounds(here)
            if low is not None:
                low[here] = bounds
            else:
                blocks.append((float(bounds.min()), start, here.stop))
        return blocks

    jobs = [(*piece, randomness.stream()) for piece in parts(scores.size, executor)]
    blocks = [block for listed in executor.map(part, jobs) for block in listed]
    if low is not None:
        return _first(runners, np.arange(scores.size), low, k, rate, randomness)
    # The first of the candidates to arrive is drawn. Each block of candidates reports only its
    # lowest lower bound on an arrival time. These show the few blocks that may hold the first
    # arrival, so no list of all bounds is needed.
    _, start, stop = min(blocks)
    latest = runners.bounds(slice(start, stop), upper=True).min()
    near = np.concatenate([np.arange(*span) for least, *span in blocks if least <= latest])
    return _first(runners, near, runners.bounds(near), k, rate, randomness)


def first_of_rows(
    scores: Integers, rate: Rate, randomness: Randomness, *, gumbel: bool, widen: float = 1.0
) -> Integers:
    """The first of the candidates of each row, from one stream for all rows, shape (m,).

    Args:
        scores: private whole numbers, shape (m, n), m ≥ 1 and n ≥ 1; |score| < 2⁶² by public
            bounds. The rows have the law of m calls of ``first_to_arrive`` for one candidate.
    """
    gaps = scores.max(axis=1, keepdims=True) - scores
    words = randomness.stream().words(scores.size)
    runners = _Candidates(words, gumbel, widen, gaps.ravel(), rate)
    low, high = (
        runners.bounds(slice(None), upper=end).reshape(gaps.shape) for end in (False, True)
    )
    places: Integers = low.argmin(axis=1)
    latest = high[np.arange(places.size), places]
    contenders = (low <= latest[:, None]).sum(axis=1)
    for row in np.flatnonzero(contenders > 1):
        own = np.arange(row * gaps.shape[1], (row + 1) * gaps.shape[1])
        places[row] = _first(runners, own, low[row], 1, rate, randomness)[0] - own[0]
    return places


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
    moved = np.asarray(rate.a / rate.b * gaps, np.float64)
    size = np.asarray(np.log(counts), np.float64)
    shift, magnitude = moved - size, moved + size
    if tail:
        beyond = float(np.log(-np.expm1(-rate.a / rate.b)))
        shift[-1] += beyond
        # The shift is the part of an arrival time without randomness. ``magnitude``, the sum of the
        # absolute values of its terms, bounds its rounding error up to a constant factor. One term
        # is ln(1 − e^−λ). Rounding its argument may move the logarithm as far as rounding a number
        # of size one, so one is added.
        magnitude[-1] += 1 - beyond
    words = randomness.stream().words(gaps.size)
    runners = _Groups(words, True, widen, shift, magnitude, counts, tail)
    # A group without candidates consumes a random word too, so that the run time does not reveal
    # how many such groups there are. Its arrival time is bounded by infinity, so it is never drawn.
    low = np.where(occupied, runners.bounds(slice(None)), np.inf)
    return int(_first(runners, gaps, low, 1, rate, randomness)[0])


@dataclass(frozen=True)
class _Runners(ABC):
    """Private: the candidates or groups of a race, with 64 bits of the uniform variable of each."""

    words: Words
    gumbel: bool
    widen: float

    def bounds(self, places: slice | Integers, *, upper: bool = False) -> Floats:
        """Lower or upper bounds on the arrival times of the candidates or groups at ``places``."""
        shift, magnitude = self.shifts(places)
        out, words = np.empty(shift.size), self.words[places]
        bounds_of_arrivals(shift, magnitude, self.gumbel, upper, self.widen, words, out)
        return out

    @abstractmethod
    def shifts(self, places: slice | Integers) -> tuple[Floats, Floats]:
        """The part of each arrival time without noise, and the sum of the sizes of its terms."""

    @abstractmethod
    def arrival(self, place: int, low: float, high: float) -> Arrival:
        """The arrival at ``place``, to be refined because its bounds do not decide the order."""


@dataclass(frozen=True)
class _Candidates(_Runners):
    #: For each candidate, how far its score is below the largest one.
    gaps: Integers
    rate: Rate

    def shifts(self, places: slice | Integers) -> tuple[Floats, Floats]:
        shift = self.rate.a / self.rate.b * self.gaps[places].astype(np.float64)
        return shift, shift

    def arrival(self, place: int, low: float, high: float) -> Arrival:
        gap, word = int(self.gaps[place]), int(self.words[place])
        return Arrival(place, gap, word, 64, low, high, gumbel=self.gumbel)


@dataclass(frozen=True)
class _Groups(_Runners):
    """One group at each distance; with ``tail`` the last stands for all further ones too."""

    shift: Floats
    magnitude: Floats
    counts: Integers
    tail: bool

    def shifts(self, places: slice | Integers) -> tuple[Floats, Floats]:
        return self.shift[places], self.magnitude[places]

    def arrival(self, place: int, low: float, high: float) -> Arrival:
        last = self.tail and place == self.counts.size - 1
        bits, count = int(self.words[place]), int(self.counts[place])
        return Arrival(place, place, bits, 64, low, high, count, last)


def _first(
    runners: _Runners, places: Integers, low: Floats, k: int, rate: Rate, randomness: Randomness
) -> Integers:
    """The first k of ``places`` to arrive, in order; ``low`` bounds their arrival times from below.

    A bound of infinity marks a group that never arrives.
    """
    # At least k candidates surely arrive by the time ``latest``. A candidate whose arrival time is
    # surely later is not among the first k and is left out.
    surely = np.flatnonzero(low <= kth_smallest(low, k))
    latest = runners.bounds(places[surely], upper=True).max()
    near = np.flatnonzero((low <= latest) & (low < np.inf))
    if near.size == 1:
        return places[near]
    order = np.argsort(low[near], kind="stable")
    contenders: Integers = places[near][order]
    low = low[near][order]
    high = runners.bounds(contenders, upper=True)
    if separated(low, high, k):
        return contenders[:k]
    ends = zip(contenders.tolist(), low.tolist(), high.tolist(), strict=True)
    close = [runners.arrival(*each) for each in ends]
    return np.array(first_in_order(close, k, rate, randomness.stream()), dtype=np.int64)


def separated(low: Floats, high: Floats, k: int) -> bool:
    """True if the brackets, sorted by their low ends, determine the order of the first k."""
    return bool((high[:k][: low.size - 1] < low[1 : k + 1]).all())


def kth_smallest(values: Floats, k: int) -> float:
    """The k-th smallest, in work that does not depend on the values; none may be NaN."""
    if k == 1:
        return float(values.min())
    # The k-th smallest float is selected by integers in the same order. Read as integers, the bits
    # of positive floats have this order. Those of negative floats have the reverse order, so all
    # but their sign bit is inverted.
    keys = _turned((values + 0.0).view(np.int64))
    key = np.array([~kth_largest(~keys, k)], dtype=np.int64)
    return float(_turned(key).view(np.float64)[0])


def _turned(bits: Integers) -> Integers:
    """Inverts the lower bits of negative numbers, with no branch on the sign; its own inverse."""
    turned: Integers = bits ^ ((bits >> 63) & _PAYLOAD)
    return turned
