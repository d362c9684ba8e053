"""The public direction of the shift of a weighted sum: a rule on utilities and weights alone.

The shifted score (``mechanisms.selection.dampening``) depends on whether δ grows or falls with u.
For large candidates, the terms with the highest power of the candidates' size determine u. Among
the terms whose δ varies, those with the highest power determine δ. The direction is the product of
the signs of the two sums. A constant δ ranks equally either way and gets +1. So the direction is −1
for degree + c·density with c > 0, whose δ falls with the degree, and +1 for degree + c·betweenness.

A wrong direction would cost accuracy, never privacy: both scores have sensitivity one.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

from mechanisms.utilities.utility import Objective, Trend, TrendingUtility

RULE = (
    "Of the terms, those of the highest power of a candidate's size decide: the sign of their "
    "weighted sum, times the sign of δ of the highest power among the terms whose δ varies. "
    "+1 where no δ varies. Fixed by names and weights, never by records."
)


def direction(terms: Sequence[tuple[Objective, Fraction]]) -> Literal[1, -1]:
    """+1 if δ of the sum Σ w·u grows with the sum, −1 if it falls. Some weight is not zero."""
    trends = [
        (m.trend if isinstance(m, TrendingUtility) else Trend(1, m.direction), weight)
        for m, weight in terms
        if weight
    ]
    value = leading([(trend.growth, trend.value * weight) for trend, weight in trends])
    varying = [
        (trend.growth, trend.sensitivity * abs(weight))
        for trend, weight in trends
        if trend.sensitivity
    ]
    return 1 if value * leading(varying) >= 0 else -1


def leading(terms: Sequence[tuple[int, Fraction]]) -> Fraction:
    """Adds the amounts of the terms (power of the size, amount) of the highest power.

    That sum decides the direction for large candidates. It is 0 without terms.
    """
    highest = max((growth for growth, _ in terms), default=0)
    return sum((amount for growth, amount in terms if growth == highest), Fraction(0))
