"""The public grid of an answer, and noise rates that never exceed the rate they round.

Answers are whole numbers of steps γ = 2^exponent. γ follows from public bounds and ε alone. It is
too fine to be visible beside the noise, and coarse enough that every scale stays in exact
arithmetic.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

from accounting.privacy_loss import NANO
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.noise.rate import Rate

#: 2·(GS / γ + 1) / ε never exceeds 2⁴⁰, and no value exceeds 2⁴⁰ steps.
_SCALE_BITS = 40
_LEAST_BITS, _STEEP_BITS = 61, 52
_STEEP, _STEEPEST = Fraction(1, 1 << 9), Fraction(1 << 9)


@dataclass(frozen=True)
class Plan:
    """Public: the step γ = 2^exponent and the global sensitivity ``cap`` in steps; 0 for a
    constant."""

    exponent: int
    cap: int

    @cached_property
    def step(self) -> Fraction:
        return Fraction(2) ** self.exponent


@lru_cache(maxsize=1024)
def whole_plan(cap: int, epsilon_nano: int) -> Plan:
    """The grid of a whole number of global sensitivity ``cap``: γ ≥ 1, usually 1."""
    exponent = 0
    while _too_fine(coarse(cap, exponent), epsilon_nano):
        exponent += 1
    return Plan(exponent, coarse(cap, exponent))


def real_exponent(largest: Fraction, epsilon_nano: int) -> int:
    """The smallest exponent for numbers of size ``largest`` > 0, which also bounds
    sensitivities."""
    exponent = largest.numerator.bit_length() - largest.denominator.bit_length() - _SCALE_BITS - 1
    while True:
        steps = int(-(-largest // Fraction(2) ** exponent))
        # Bounds of opposite sign are at most twice as far apart.
        if steps <= 1 << _SCALE_BITS and not _too_fine(2 * steps + 1, epsilon_nano):
            return exponent
        exponent += 1


def coarse(change: int, exponent: int) -> int:
    """A bound on a whole number's change after it is floored to steps of 2^exponent ≥ 1."""
    return -(-change >> exponent)


def _too_fine(cap: int, epsilon_nano: int) -> bool:
    return 2 * (cap + 1) * NANO > epsilon_nano << _SCALE_BITS


@lru_cache(maxsize=1024)
def rate_at_most(rate: Fraction) -> Rate:
    """A rate λ ≤ ``rate`` > 0, smaller by a factor of at most 1 + 2⁻²⁰ unless it is above 2⁹.

    Raises: UnsupportedQuery below 2⁻⁴⁰, which public facts decide.
    """
    if rate >= _STEEPEST:
        return Rate(1 << 61, 1 << _STEEP_BITS)
    bits = _STEEP_BITS if rate >= _STEEP else _LEAST_BITS
    a = rate.numerator * (1 << bits) // rate.denominator
    if a < 1 << (_LEAST_BITS - _SCALE_BITS):
        raise UnsupportedQuery("the privacy loss is too small for exact arithmetic")
    return Rate(a, 1 << bits)
