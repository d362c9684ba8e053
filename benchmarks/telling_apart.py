"""Whether two things can be told apart by what is observed of them, with an exact chance of error.

Both are observed in pairs, and a coin says which is observed first. If an observation does not
depend on which of the two it is of, then swapping the members of a pair changes nothing: given the
values, the order in every pair is a fair coin. So at any threshold, those pairs of which only the
left member lies above it are binomial with chance 1/2 among those of which only one does.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import comb

Pair = tuple[float, float]

#: Thresholds that are looked at, beside the order of the members: quantiles of all values.
QUANTILES = 15


def chance_if_alike(pairs: Sequence[Pair]) -> Fraction:
    """At most this likely are pairs as one-sided as these, when their members are alike.

    The smallest of the exact two-sided sign tests, times their number (Bonferroni); the thresholds
    depend on the values alone, not on their order, so each of the tests stays exact. Sees every
    difference of distributions that shows at one of the thresholds, not of the means alone.
    """
    values = sorted(value for pair in pairs for value in pair)
    if not values:
        return Fraction(1)
    places = {len(values) * (i + 1) // (QUANTILES + 1) for i in range(QUANTILES)}
    thresholds = {values[place] for place in places}
    tests = [_sign_test(sum(x > y for x, y in pairs), sum(x < y for x, y in pairs))]
    for threshold in thresholds:
        above = sum(x > threshold >= y for x, y in pairs)
        below = sum(x <= threshold < y for x, y in pairs)
        tests.append(_sign_test(above, below))
    return min(Fraction(1), min(tests) * len(tests))


def _sign_test(above: int, below: int) -> Fraction:
    """The chance that fair coins fall at least as one-sided."""
    coins = above + below
    tail = sum(comb(coins, heads) for heads in range(max(above, below), coins + 1))
    return min(Fraction(1), Fraction(2 * tail, 2**coins))
