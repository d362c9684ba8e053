"""Smooth bounds on the local sensitivity of a quantile, for both relations of tables.

Let x_1 ≤ … ≤ x_n be the numbers, with the public bounds at all other ranks, and m the rank of the
quantile. After s + 1 replacements the quantile lies anywhere in a window of s + 1 gaps around m:

    LS(s) = max over 0 ≤ k ≤ s + 1 of x_{m + k} − x_{m + k − s − 1}.

Under add/remove the rank moves as well. With w deletions inside a window and R = s − w changes
elsewhere, the rank reaches every window x_i … x_{i + w + 1} for i_min ≤ i ≤ i_max. Both limits are
extremes of a function that is monotone in the number of insertions among the R changes. So it is
enough to compute it for R insertions and for R deletions.

Deletions inside move the rank of p ≤ 1/2 upwards as far as any changes, and that of p ≥ 1/2
downwards. So the median needs windows with R = 0 alone, and another quantile those of one side
besides, which need insertions. There the first distance of a window is f(i) + h(i + w + 1), which
makes the best right end monotone in the left end.
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

#: The number of changes of the records from which on the smooth bound uses the global sensitivity
#: in place of the local one. The number is public. To search farther would take too long.
FARTHEST = 4096


@dataclass(frozen=True)
class SortedNumbers:
    """The numbers x_1 ≤ … ≤ x_n of the rows in grid steps, and the public bounds at other ranks."""

    numbers: NDArray[np.float64]
    exponent: int
    low: int
    high: int
    #: The private number of rows that meet the query's condition. Their numbers come first, and the
    #: others are ignored. None if all rows count.
    rows: int | None = None

    @property
    def count(self) -> int:
        return len(self.numbers) if self.rows is None else self.rows

    @follows_records(
        "ranks beyond the rows that count have no number", lambda first, stop: stop - first + 8
    )
    def window(self, first: int, stop: int) -> Integers:
        """Return x_first … x_{stop − 1}; ranks below 1 and above n have the public bounds."""
        inside = on_grid(
            self.numbers[max(first, 1) - 1 : max(min(stop - 1, self.count), 0)], self.exponent
        )
        before = max(min(stop, 1) - first, 0)
        after = max(stop - max(first, self.count + 1), 0)
        return np.concatenate(
            (np.full(before, self.low), inside, np.full(after, self.high))
        ).astype(np.int64)


def farthest(cap: int, beta: float) -> int:
    """Return a distance from which even GS = ``cap``, times e^{−βs}, is below one step."""
    return ceil(log(max(cap, 2)) / beta) + 1


def most_windows(cap: int, beta: float) -> int:
    """The public number of windows that ``AddRemoveBound`` looks at, at most."""
    return _most_steps(min(FARTHEST, farthest(cap, beta)))


@dataclass(frozen=True)
class QuantileBound:
    """The base of both smooth bounds S of a quantile; ``cap`` is the global sensitivity GS.

    S is at least one step, a public constant, so only distances up to ln(GS)/β matter.
    """

    ordered: SortedNumbers
    quantile: Fraction
    cap: int

    def reach(self, beta: float) -> int:
        return farthest(self.cap, beta)


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


def _most_steps(horizon: int) -> int:
    """A bound on the windows up to this distance, with the searches among them."""
    return 64 * (horizon + 8) * (horizon + 8).bit_length() ** 2


class AddRemoveBound(QuantileBound):
    """The smooth bound under add/remove. Implements ``SmoothBound``.

    The global sensitivity replaces the local one from distance ``FARTHEST`` on, and where fewer
    than two rows would remain.
    """

    @follows_records(
        "the windows lie between the ranks of the rows that count",
        lambda self, beta: most_windows(self.cap, beta),
    )
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
        widest = _widest_by_deletions(numbers, first, count, share, whole, horizon, beta)
        # A window is an interval between two of the sorted numbers, anywhere in which changes of
        # the records may put the quantile. For the minimum (p = 0) and the median (p = 1/2),
        # insertions allow no wider window than deletions. Other quantiles need both.
        if 0 < share != whole - share:
            inserted = _widest_by_insertions(numbers, first, count, share, whole, horizon, beta)
            widest = max(widest, inserted)
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
        # A window is an interval between two of the sorted numbers. Changes outside of it move the
        # rank of the quantile. ``others`` is their number, and all of them, or none, are below the
        # window. The highest window is reached by deletions below it and insertions above it, and
        # the lowest by the reverse.
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
def _widest_by_deletions(
    numbers: Integers,
    first: int,
    count: int,
    share: int,
    whole: int,
    horizon: int,
    beta: float,
) -> float:
    """Return max over s < horizon of e^{−βs} times the windows with all s deletions inside."""
    best = 0.0
    for s in range(horizon):
        low, high = _reach(share, whole, count, s, 0)
        for i in range(low, high + 1):
            width = numbers[min(i + s + 1, count + 1) - first] - numbers[i - first]
            best = max(best, width * np.exp(-beta * s))
    return best


@compiled
def _edge(share: int, whole: int, count: int, a: int) -> int:
    """The last right end (p < 1/2) or the first (p > 1/2) of a window x_a … that needs insertions.

    The proof of Theorem 5.2a in docs/dev/theory/statistics.md has the inequalities.
    """
    if 2 * share < whole:
        return (share * (count + 2) - whole - (whole - share) * a - 1) // share
    return a + 2 + count - whole * a // share


@compiled
def _changes(share: int, whole: int, count: int, a: int, b: int) -> int:
    """The least changes that reach a window which needs insertions: f(a) + h(b)."""
    deleted = b - a - 1
    if 2 * share < whole:
        outside = share * (count + 2 - b) - (whole - share) * a - whole
        return deleted - (-outside // (whole - share))
    return deleted + whole * a // share - count + deleted


@compiled
@follows_records("the shape of the search", _most_steps)
def _widest_by_insertions(
    numbers: Integers,
    first: int,
    count: int,
    share: int,
    whole: int,
    horizon: int,
    beta: float,
) -> float:
    """Return max of e^{−βs}·width over the windows that need insertions at their first distance s.

    Rows are left ends a, columns right ends b. Ends of a row fall as a rises, so the windows are a
    staircase, which is cut into rectangles. In a rectangle s = f(a) + h(b), so the best b of a row
    never falls as a rises. Windows beyond the horizon do no harm: the caller counts more for them.
    """
    place, before = rank(share, whole, count), 2 * share < whole
    least, most = max(place - horizon - 3, 0), min(place + horizon + 3, count + 1)
    best = 0.0
    steps = [(least, min(most, count), least if before else most)]
    while len(steps) > 0:
        low, high, column = steps.pop()
        if before:
            b_low, b_high = column, min(_edge(share, whole, count, high), most)
            column = max(column, b_high + 1)
        else:
            b_low, b_high = max(_edge(share, whole, count, low), least), column
            column = min(column, b_low - 1)
        if low < high:
            middle = (low + high) // 2
            steps.append((low, middle, column))
            steps.append((middle + 1, high, column))
        stack = [(low, high, b_low, b_high)]
        while len(stack) > 0 and b_low <= b_high:
            a_low, a_high, from_b, to_b = stack.pop()
            a = (a_low + a_high) // 2
            top, at = -np.inf, from_b
            for b in range(from_b, to_b + 1):
                # The search looks for the best window from number a to number b, with a < b. Any
                # other pair gets a negative value, smaller for smaller b. So the best b still never
                # falls as a rises, which the search relies on.
                value = float(b - a - 1)
                if b > a:
                    width = numbers[b - first] - numbers[a - first]
                    value = width * np.exp(-beta * _changes(share, whole, count, a, b))
                if value > top:
                    top, at = value, b
            best = max(best, top)
            if a_low < a:
                stack.append((a_low, a - 1, from_b, at))
            if a < a_high:
                stack.append((a + 1, a_high, at, to_b))
    return best
