"""The public grid on which an answer is released, and noise rates rounded down to exact ones.

Answers are whole numbers of steps γ = 2^exponent. γ follows from public bounds and ε alone. A
step is far smaller than the noise, and large enough that every noise scale stays in exact
arithmetic.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

from accounting.privacy_loss import NANO
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.noise.rate import Rate

#: The grid on which an answer is rounded is coarsened until 2·(GS + 1) / ε is at most 2⁴⁰, so that
#: noise fits into 64 bits. GS is the global sensitivity in grid steps. Numbers of an attribute are
#: at most 2⁴⁰ grid steps from 0.
_SCALE_BITS = 40
#: log₂ of the smallest normal double. Smaller doubles have fewer digits, so no grid step is
#: smaller.
_LEAST_EXPONENT = -1022
_LEAST_BITS, _STEEP_BITS = 61, 52
_STEEP, _STEEPEST = Fraction(1, 1 << 9), Fraction(1 << 9)


@dataclass(frozen=True)
class Plan:
    """The public grid of one answer, with steps of 2^exponent.

    ``cap`` is the global sensitivity in steps, or 0 if the answer is equal for all records.
    """

    exponent: int
    cap: int

    @cached_property
    def step(self) -> Fraction:
        return Fraction(2) ** self.exponent


@lru_cache(maxsize=1024)
def whole_plan(cap: int, epsilon_nano: int) -> Plan:
    """Return the grid of whole numbers of global sensitivity ``cap``; its step is mostly 1."""
    exponent = 0
    while _too_fine(coarse(cap, exponent), epsilon_nano):
        exponent += 1
    return Plan(exponent, coarse(cap, exponent))


def real_exponent(largest: Fraction, epsilon_nano: int) -> int:
    """Return the exponent of the finest grid for numbers whose absolute value is at most
    ``largest`` > 0.

    Raises: UnsupportedQuery if the step is no double of full precision: released numbers are
        written as doubles.
    """
    exponent = largest.numerator.bit_length() - largest.denominator.bit_length() - _SCALE_BITS - 1
    while True:
        steps = int(-(-largest // Fraction(2) ** exponent))
        # ``steps`` is the larger of the attribute's two public bounds in absolute value, in grid
        # steps. The sensitivity is at most the distance between the bounds: up to twice ``steps``
        # if their signs differ.
        if steps <= 1 << _SCALE_BITS and not _too_fine(2 * steps + 1, epsilon_nano):
            break
        exponent += 1
    if exponent < _LEAST_EXPONENT:
        raise UnsupportedQuery("the public bounds are too close to 0 for exact arithmetic")
    return exponent


def coarse(change: int, exponent: int) -> int:
    """Return the largest change in steps of 2^exponent ≥ 1, to which a number is rounded down."""
    return -(-change >> exponent)


def _too_fine(cap: int, epsilon_nano: int) -> bool:
    return 2 * (cap + 1) * NANO > epsilon_nano << _SCALE_BITS


def rate_at_most(rate: Fraction) -> Rate:
    """Round a noise rate > 0 down, by a factor of at most 1 + 2⁻²⁰; rates above 2⁹ become 2⁹.

    Raises: UnsupportedQuery for a rate below 2⁻⁴⁰. Public facts alone decide this.
    """
    if rate >= _STEEPEST:
        return Rate(1 << 61, 1 << _STEEP_BITS)
    bits = _STEEP_BITS if rate >= _STEEP else _LEAST_BITS
    a = rate.numerator * (1 << bits) // rate.denominator
    if a < 1 << (_LEAST_BITS - _SCALE_BITS):
        raise UnsupportedQuery("the privacy loss is too small for exact arithmetic")
    return Rate(a, 1 << bits)
