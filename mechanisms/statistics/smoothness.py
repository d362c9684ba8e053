"""β*: the largest rate at which a noise scale may change between neighbours.

Let Laplace noise of scale S / (ε/2) be added to a value that moves by at most S, with S(x) ≤
e^β·S(x') for neighbours x, x'. This is (ε, δ)-DP, for every ε > 0, as long as

    ½(1 − e^−β)·[ e^{−(ε/2 + β)/(e^β − 1)} + e^{−(3ε/2 + β)/(e^β − 1)} ] ≤ δ

and β + (ε/2)·e^−β ≤ ε. The left side is the exact hockey-stick divergence of the worst pair, so no
larger β suffices. Nissim, Raskhodnikova and Smith 2007 have β = ε / (2·ln(2/δ)), about 0.6·β*.
"""

from fractions import Fraction
from functools import lru_cache
from typing import Any

from accounting.privacy_loss import ATTO, NANO
from mechanisms.noise.intervals import intervals

#: The number of bisections that search for the largest valid smoothness β in [0, min(ε, 64)].
#: Stopping early is safe, because every smaller β is private too.
_STEPS = 60
_LARGEST = 64.0
_PRECISION = 200

#: This is subtracted from the smoothness β, because noise scales are rounded up by a factor of up
#: to 1 + 2⁻²⁰ and have relative errors of 2⁻²⁹. Otherwise the noise scales of neighbouring datasets
#: could differ by more than a factor of e^β.
SLACK = 2.0**-19
#: If the smoothness β is smaller than this, the noise scale follows from the global sensitivity,
#: because little of β would be left after ``SLACK`` is subtracted. The rule depends on public facts
#: alone.
LEAST = 2.0**-17


@lru_cache(maxsize=1024)
def largest_beta(epsilon_nano: int, delta_atto: int) -> float:
    """β* rounded down, by bisection on an upper bound in interval arithmetic; 0 when δ = 0."""
    if delta_atto == 0:
        return 0.0
    iv = intervals(_PRECISION)
    epsilon, delta = Fraction(epsilon_nano, NANO), Fraction(delta_atto, ATTO)
    low, high = 0.0, min(epsilon_nano / NANO, _LARGEST)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if _holds(iv, epsilon, delta, middle):
            low = middle
        else:
            high = middle
    return low


def smooth_beta(epsilon_nano: int, delta_atto: int) -> float | None:
    """The β of smooth noise scales, or None if scales must not depend on the records."""
    beta = largest_beta(epsilon_nano, delta_atto)
    return None if beta < LEAST else beta - SLACK


def _holds(iv: Any, epsilon: Fraction, delta: Fraction, beta: float) -> bool:
    """True if both conditions in the module docstring hold for β, in the intervals of ``iv``."""
    if beta <= 0:
        return False
    loss = iv.mpf(epsilon.numerator) / epsilon.denominator
    b = iv.mpf(beta)
    growth = iv.exp(b) - 1
    near, far = (iv.exp(-(loss * half / 2 + b) / growth) for half in (1, 3))
    divergence = (1 - iv.exp(-b)) * (near + far) / 2
    condition = b + loss / 2 * iv.exp(-b)
    bound = iv.mpf(delta.numerator) / delta.denominator
    return bool(divergence.b <= bound.a and condition.b <= loss.a)
