"""The rate of all noise: λ = a / b per grid step, as two whole numbers that coins can use.

The ranges below keep every coin and every noise value inside 64 bits. Public facts (ε, q, the
number of draws) decide them, before anything private is read.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from accounting.privacy_loss import NANO
from mechanisms.model.errors import UnsupportedQuery

#: A geometric draw counts the successes of random coins. If it counts this many, it raises
#: NoiseOverflow.
LARGEST_RUN = 1024
#: The absolute value of noise stays below this and that of scores below 2⁶², so their sum fits 64
#: bits.
NOISE_LIMIT = 1 << 61

_COIN_LIMIT = 1 << 62
_STEADY_BITS = 20
_STEADY_DRAWS = 1 << 11


@dataclass(frozen=True, slots=True)
class Rate:
    """λ = a / b: noise falls by e^−λ per grid step. The fraction need not be reduced.

    Raises: UnsupportedQuery when a noise value could leave 64 bits.
    """

    a: int
    b: int

    def __post_init__(self) -> None:
        if self.a < 1 or self.b < 1:
            raise UnsupportedQuery("the share of one draw is less than the smallest loss, 10⁻⁹")
        u, v = self.b - 1, LARGEST_RUN - 1
        if self.b >= _COIN_LIMIT or u + v * (self.b % self.a) >= 1 << 63:
            raise UnsupportedQuery("the privacy loss and number of draws exceed exact arithmetic")
        if (u + v * self.b) // self.a >= NOISE_LIMIT:
            raise UnsupportedQuery("the privacy loss of one draw is too small for exact arithmetic")

    @classmethod
    def of(
        cls, epsilon_nano: int, score_bits: int, draws: int = 1, *, one_way: bool = False
    ) -> Self:
        """λ = ε / (draws · 2^{q + 1}): selection by scores of sensitivity 2^q, q = score_bits.

        Twice that rate with ``one_way``: between any two neighbours all scores rise, or all fall.
        """
        if not 0 <= score_bits < 62:
            raise UnsupportedQuery("there are too many draws for exact arithmetic")
        return cls(epsilon_nano, NANO * draws << (score_bits + (0 if one_way else 1)))

    @classmethod
    def of_counts(cls, epsilon_nano: int, sensitivity: int = 1) -> Self:
        """λ = ε / D: whole numbers that neighbours move by at most D in the sum of changes."""
        return cls(epsilon_nano, NANO * sensitivity)

    @classmethod
    def of_scale(cls, scale: Fraction) -> Self:
        """λ = 1 / scale, exactly; the scale is rational and in grid steps."""
        return cls(scale.denominator, scale.numerator)

    def exponent(self) -> Fraction:
        """λ itself."""
        return Fraction(self.a, self.b)


def score_bits(draws: int) -> int:
    """q, the bits of the grid of scores, for a selection of ``draws`` candidates together.

    20 while the rate has room for the draws, and fewer beyond: k · 2^q never exceeds 2³¹. A grid of
    q bits changes no probability by a factor beyond exp(ε · 2^−(q + 1)).
    """
    if draws <= _STEADY_DRAWS:
        return _STEADY_BITS
    bits = 31 - (draws - 1).bit_length()
    if bits < 0:
        raise UnsupportedQuery("there are too many draws for exact arithmetic")
    return bits
