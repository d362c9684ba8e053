"""Whether two things can be told apart by what is observed of them, with an exact chance of error.

Both are observed in pairs, and a coin says which is observed first. If an observation does not
depend on which of the two it is of, then swapping the members of a pair changes nothing: given the
values, the order in every pair is a fair coin. So at any threshold, those pairs of which only the
left member lies above it are binomial with chance 1/2 among those of which only one does.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from fractions import Fraction
from math import comb

Pair = tuple[float, float]

#: The number of thresholds (quantiles of all values) at which a sign test compares the two members
#: of each pair.
QUANTILES = 15


def chance_if_alike(pairs: Sequence[Pair]) -> Fraction:
    """At most this likely are pairs as one-sided as these, when their members are alike.

    The smallest of exact two-sided tests, times their number (Bonferroni): the signed ranks of the
    differences, which see a small shift of most values, and sign tests at thresholds. Ranks and
    thresholds depend on the values alone, not on their order, so each of the tests stays exact.
    Sees every difference of distributions that shows at a threshold, not of the means alone.
    """
    values = sorted(value for pair in pairs for value in pair)
    if not values:
        return Fraction(1)
    places = {len(values) * (i + 1) // (QUANTILES + 1) for i in range(QUANTILES)}
    thresholds = {values[place] for place in places}
    tests = [
        _sign_test(sum(x > y for x, y in pairs), sum(x < y for x, y in pairs)),
        _signed_ranks([x - y for x, y in pairs if x != y]),
    ]
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


def _signed_ranks(differences: Sequence[float]) -> Fraction:
    """The chance that fair coins as signs give rank sums at least as one-sided (Wilcoxon 1945)."""
    sizes = sorted(map(abs, differences))
    # ``rank`` has twice the rank of each size. Equal sizes share the mean of their ranks, which may
    # end in a half, so twice the rank is whole.
    rank = {size: bisect_left(sizes, size) + bisect_right(sizes, size) + 1 for size in sizes}
    ranks = [rank[size] for size in sizes]
    above = sum(rank[abs(one)] for one in differences if one > 0)
    least = max(above, sum(ranks) - above)
    # The coefficients of the product of 1 + x^rank, side by side in one integer. Coefficient s is
    # the number of sign patterns whose positive ranks sum to s.
    width = len(ranks) + 1
    counts = 1
    for one in ranks:
        counts += counts << width * one
    counts >>= width * least
    # Adds up the remaining coefficients: one half is added to the other until a single number is
    # left.
    places = sum(ranks) - least + 1
    while places > 1:
        half = (places + 1) // 2
        counts = (counts >> width * half) + (counts & ((1 << width * half) - 1))
        places = half
    return min(Fraction(1), Fraction(2 * counts, 2 ** len(ranks)))
