"""Weights as whole numbers: a common factor changes no score, so only ratios matter."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from math import gcd, lcm

from mechanisms.model.errors import UnsupportedQuery

#: Weights are scaled and rounded to whole numbers, the largest of which is at most 2 to the power
#: of this number.
FINEST = 20
#: The weight that a query gives a utility is 0, or its absolute value lies in this range.
SMALLEST, LARGEST = Decimal("1e-12"), Decimal("1e12")


def exact_weight(weight: Decimal | None) -> Fraction:
    """The exact weight, or 1 for None. Raises: UnsupportedQuery when it is out of range."""
    if weight is None:
        return Fraction(1)
    if not weight.is_finite() or (weight and not SMALLEST <= abs(weight) <= LARGEST):
        raise UnsupportedQuery(
            f"a weight is 0 or lies between {SMALLEST} and {LARGEST} in absolute value",
            supported={"smallest_weight": str(SMALLEST), "largest_weight": str(LARGEST)},
        )
    return Fraction(weight)


def whole_weights(weights: Sequence[Fraction]) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Whole weights, the finest first, each with its fineness in bits.

    The exact ratios come first if they fit into 2^FINEST, and count as the finest. Then follow the
    nearest whole numbers to 2^w · wᵢ / max|w|, halves to even, for w = FINEST, …, 1; none becomes
    zero. The weights are not zero.
    """
    multiple = lcm(*(weight.denominator for weight in weights))
    exact = [int(weight * multiple) for weight in weights]
    common = gcd(*exact)
    exact = [weight // common for weight in exact]
    if max(map(abs, exact)) <= 1 << FINEST:
        yield FINEST, tuple(exact)
    largest = max(map(abs, weights))
    for bits in range(FINEST, 0, -1):
        yield bits, tuple(_nearest(weight * (1 << bits) / largest) for weight in weights)


def _nearest(weight: Fraction) -> int:
    return round(weight) or (1 if weight > 0 else -1)
