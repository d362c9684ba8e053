"""Smooth bounds on the local sensitivity of a quantile, for both relations of tables.

Let x_1 ≤ … ≤ x_n be the numbers, with the public bounds at all other ranks, and m the rank of the
quantile. After s + 1 replacements the quantile lies anywhere in a window of s + 1 gaps around m:

    LS(s) = max over 0 ≤ k ≤ s + 1 of x_{m + k} − x_{m + k − s − 1}.

Under add/remove the rank moves as well. With w deletions inside a window and R = s − w changes
elsewhere, the rank reaches every window x_i … x_{i + w + 1} for i_min ≤ i ≤ i_max. Both limits are
extremes of a function that is monotone in the number of insertions among the R changes. So it is
enough to compute it for R insertions and for R deletions.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp, log

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.compiled import compiled
from mechanisms.model.following import follows_records
from mechanisms.noise.addition import Integers
from mechanisms.statistics.tables import on_grid

#: From this public distance on the bound is the global sensitivity, times a negligible e^{−βs}.
FARTHEST = 4096


@dataclass(frozen=True)
class SortedNumbers:
    """The numbers x_1 ≤ … ≤ x_n of the rows in grid steps, and the public bounds at other ranks."""

    numbers: NDArray[np.float64]
    exponent: int
    low: int
    high: int

    @property
    def count(self) -> int:
        return len(self.numbers)

    def window(self, first: int, stop: int) -> Integers:
        """Return x_first … x_{stop − 1}; ranks below 1 and above n have the public bounds."""
        inside = on_grid(self.numbers[max(first, 1) - 1 : max(stop - 1, 0)], self.exponent)
        before = max(min(stop, 1) - first, 0)
        after = max(stop - max(first, self.count + 1), 0)
        return np.concatenate(
            (np.full(before, self.low), inside, np.full(after, self.high))
        ).astype(np.int64)


@dataclass(frozen=True)
class QuantileBound:
    """The base of both smooth bounds S of a quantile; ``cap`` is the global sensitivity GS.

    S is at least one step, a public constant, so only distances up to ln(GS)/β matter.
    """

    ordered: SortedNumbers
    quantile: Fraction
    cap: int

    def reach(self, beta: float) -> int:
        """Return a distance from which even GS, times e^{−βs}, is below one step."""
        return ceil(log(max(self.cap, 2)) / beta) + 1


class ReplaceBound(QuantileBound):
    """The smooth bound under replace. Implements ``SmoothBound``.

    As the left end of a window moves right, its best right end does too.
    """

    def smooth(self, beta: float) -> float:
        count, reach = self.ordered.count, self.reach(beta)
        place = rank(self.quantile.numerator, self.quantile.denominator, count)
        left = self.ordered.window(max(place - reach, 0), place + 1)
        right = self.ordered.window(place, max(min(place + reach, count + 1), place) + 1)
        return max(1.0, _widest(left, right, beta))


class AddRemoveBound(QuantileBound):
    """The smooth bound under add/remove. Implements ``SmoothBound``.

    The global sensitivity replaces the local one from distance ``FARTHEST`` on, and where fewer
    than two rows would remain.
    """

    def smooth(self, beta: float) -> float:
        count = self.ordered.count
        share, whole = self.quantile.numerator, self.quantile.denominator
        horizon = min(FARTHEST, max(count - 1, 0))
        beyond = exp(-beta * horizon) * self.cap
        horizon = min(horizon, self.reach(beta))
        place = rank(share, whole, count)
        first = max(place - 2 * horizon - 4, 0)
        stop = max(min(place + 3 * horizon + 8, count + 2), first + 2)
        numbers = self.ordered.window(first, stop)
        widest = _widest_of_pairs(numbers, first, count, share, whole, horizon, self.cap, beta)
        return max(1.0, beyond, widest)


class ConditionalReplaceBound(AddRemoveBound):
    """The smooth bound under replace for the rows that meet a condition.

    A replacement removes a row from them and adds one, or does one of both, or neither. It makes
    at most two add/remove steps. Let T be the add/remove bound for the smoothness β/2. Then T
    changes by at most e^β between neighbours. The quantile moves by at most T(x) in the first step
    and by at most e^{β/2}·T(x) in the second, so S = (1 + e^{β/2})·T. Implements ``SmoothBound``.
    """

    def smooth(self, beta: float) -> float:
        return (1 + exp(beta / 2)) * super().smooth(beta / 2)


@compiled
def rank(share: int, whole: int, count: int) -> int:
    """Return max(1, ⌈p·n⌉), the rank of the quantile p = share / whole among n = ``count`` rows."""
    return max(1, -(-(share * count) // whole))


@compiled
@follows_records(
    "the shape of the search",
    lambda left, right: (len(left) + len(right)) * (len(left).bit_length() + 2) + 2,
)
def _widest(left: Integers, right: Integers, beta: float) -> float:
    """Return max over a, b of (right[b] − left[a])·e^{−β(d − 1)}, where d ranks lie from a to b.

    ``left`` ends and ``right`` begins with the number of the rank itself.
    """
    last = len(left) - 1
    best = 0.0
    stack = [(0, last, 0, len(right) - 1)]
    while len(stack) > 0:
        a_low, a_high, b_low, b_high = stack.pop()
        a = (a_low + a_high) // 2
        top, at = -1.0, b_low
        for b in range(b_low, b_high + 1):
            steps = b + last - a
            value = (right[b] - left[a]) * np.exp(-beta * (steps - 1))
            if value > top:
                top, at = value, b
        best = max(best, top)
        if a_low < a:
            stack.append((a_low, a - 1, b_low, at))
        if a < a_high:
            stack.append((a + 1, a_high, at, b_high))
    return best


@compiled
def _reach(share: int, whole: int, count: int, deleted: int, others: int) -> tuple[int, int]:
    """Return i_min and i_max of the module docstring for w = ``deleted``, R = ``others``."""
    low, high = count + 1, -1
    for away in (0, others):
        # R changes elsewhere, ``away`` of them deletions below the window or insertions above it.
        fewer = count + others - 2 * away - deleted
        high = max(
            high,
            max(rank(share, whole, fewer + 1) - 1, rank(share, whole, fewer - 1)) + away,
        )
        more = count + 2 * away - others - deleted
        low = min(
            low,
            min(rank(share, whole, more + 1) - 1, rank(share, whole, more - 1)) - away,
        )
    return max(low, 0), min(high, count)


@compiled
@follows_records(
    "distances that cannot raise the maximum are skipped",
    lambda horizon: 8 * (horizon + 2) ** 2 * (horizon + 4),
)
def _widest_of_pairs(
    numbers: Integers,
    first: int,
    count: int,
    share: int,
    whole: int,
    horizon: int,
    cap: int,
    beta: float,
) -> float:
    """Return max over s < horizon of e^{−βs}·LS(s); each window counts at its first distance only.

    At distance s a window ends at most max(p, 1 − p)·s + 2 ranks away on either side. So once the
    windows with all deletions inside have set a maximum, most distances are skipped.
    """
    place, far = rank(share, whole, count), max(share, whole - share)
    best = 0.0
    for s in range(horizon):
        low, high = _reach(share, whole, count, s, 0)
        for i in range(low, high + 1):
            width = numbers[min(i + s + 1, count + 1) - first] - numbers[i - first]
            best = max(best, width * np.exp(-beta * s))
    for s in range(horizon):
        fade = np.exp(-beta * s)
        if cap * fade <= best:
            break
        away = far * s // whole + 2
        reach = (
            numbers[min(place + away, count + 1) - first] - numbers[max(place - away, 0) - first]
        )
        if reach * fade <= best:
            continue
        for deleted in range(s):
            low, high = _reach(share, whole, count, deleted, s - deleted)
            seen_low, seen_high = _reach(share, whole, count, deleted, s - deleted - 1)
            for i in range(low, high + 1):
                if not seen_low <= i <= seen_high:
                    width = numbers[min(i + deleted + 1, count + 1) - first] - numbers[i - first]
                    best = max(best, width * fade)
    return best
