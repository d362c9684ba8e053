"""From a sum of ρ to a promise in ε and δ: the limit of an account that counts in ρ as well.

ρ-zCDP implies (ε, δ) with δ = min over α > 1 of e^{(α−1)(αρ−ε)}/α·(1 − 1/α)^{α−1} (Canonne,
Kamath, Steinke 2020; Asoodeh et al. 2021). Solved for ρ at one α this is

    ρ = (ε + ln(δα)/(α − 1) − ln(1 − 1/α)) / α.

Every α gives a limit that is safe, so the search for the best one needs no care. The limit itself
is computed once at the α that was found, with every rounding downwards.
"""

from decimal import ROUND_FLOOR, Context, Decimal
from functools import lru_cache

from accounting.privacy_loss import ATTO, NANO
from accounting.rho import FEMTO

#: The largest ε and δ that an account may allow if it counts charges in ρ. With larger ones, its
#: sums of ρ could leave 64 bits.
MOST_EPSILON_NANO = 1000 * NANO
MOST_COMPOSITION_ATTO = ATTO // 1000

_DIGITS = 50
#: The decimal digits of the Rényi order α. The limit in ρ multiplies α by δ, which has 18 digits,
#: so the product is exact in 50 digits.
_ALPHA_DIGITS = 30
_DOWN = Context(prec=_DIGITS, rounding=ROUND_FLOOR)
_NEAREST = Context(prec=_DIGITS)
#: A golden-section search finds the Rényi order α that allows the most ρ. These are the range of
#: ln(α − 1) that it covers and the number of its steps. Each step leaves 0.618 of the range.
_FIRST, _LAST, _STEPS = Decimal(-14), Decimal(18), 120
_SHARE = Decimal("0.61803398874989484820458683436563811772030917980576")


@lru_cache(maxsize=1024)
def rho_limit(epsilon_nano: int, delta_atto: int) -> int:
    """The most femto-ρ that keep to (ε, δ), or a number at most 2 below it; 0 if there are none.

    Raises: ValueError for δ = 0, or beyond the largest limits of accounts that count in ρ.
    """
    if not 0 < delta_atto <= MOST_COMPOSITION_ATTO or not 0 <= epsilon_nano <= MOST_EPSILON_NANO:
        raise ValueError("a limit in ρ needs ε of at most 1000, and δ above 0 and at most 0.001")
    epsilon, delta = Decimal(epsilon_nano) / NANO, Decimal(delta_atto) / ATTO
    alpha = _best_alpha(epsilon, delta)
    femto = _DOWN.multiply(_limit_at(alpha, epsilon, delta, _DOWN), Decimal(FEMTO))
    return max(0, int(femto.to_integral_value(ROUND_FLOOR)))


def holds(epsilon_nano: int, delta_atto: int, rho_femto: int) -> bool:
    """True if (ε, δ) hold for releases of so much ρ, or if that is 0."""
    if not 0 < delta_atto <= MOST_COMPOSITION_ATTO or not 0 <= epsilon_nano <= MOST_EPSILON_NANO:
        return not rho_femto
    return rho_femto <= rho_limit(epsilon_nano, delta_atto)


def _limit_at(alpha: Decimal, epsilon: Decimal, delta: Decimal, context: Context) -> Decimal:
    """ρ at one α. With the context ``_DOWN`` it is a lower bound: each term is rounded down."""
    less = context.subtract(alpha, Decimal(1))
    tail = context.divide(_log(context.multiply(delta, alpha), context), less)
    rest = _log(context.divide(alpha, less), context)  # −ln(1 − 1/α) is a term of the limit in ρ.
    return context.divide(context.add(context.add(epsilon, tail), rest), alpha)


def _log(value: Decimal, context: Context) -> Decimal:
    """ln, or with ``_DOWN`` a number below it: Decimal rounds ln to the nearest number."""
    nearest = context.ln(value)
    return context.next_minus(nearest) if context is _DOWN else nearest


def _best_alpha(epsilon: Decimal, delta: Decimal) -> Decimal:
    """α with the largest ρ, by golden section: ρ has one maximum in ln(α − 1)."""

    def alpha(x: Decimal) -> Decimal:
        return Context(prec=_ALPHA_DIGITS).add(_NEAREST.exp(x), Decimal(1))

    def value(x: Decimal) -> Decimal:
        return _limit_at(alpha(x), epsilon, delta, _NEAREST)

    low, high = _FIRST, _LAST
    left, right = high - _SHARE * (high - low), low + _SHARE * (high - low)
    at_left, at_right = value(left), value(right)
    for _ in range(_STEPS):
        if at_left >= at_right:
            high, right, at_right = right, left, at_left
            left = high - _SHARE * (high - low)
            at_left = value(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _SHARE * (high - low)
            at_right = value(right)
    return alpha((low + high) / 2)
