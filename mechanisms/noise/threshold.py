"""The threshold of noisy counts on a domain that is not public, and the δ that it costs.

A cell that one record alone has comes back with probability t = P(1 + Z ≥ τ) = p^(τ−1) / (1 + p),
for discrete Laplace noise Z of p = e^−λ and τ ≥ 2. This is the only event that one of two
neighbours cannot have, so t is the exact δ. Under ``replace`` one record leaves a cell and enters
another, at half the rate each, and the same formula holds.
Source: Korolova, Kenthapadi, Mishra, Ntoulas 2009, with the exact tail of discrete noise.
"""

from fractions import Fraction
from functools import lru_cache
from math import ceil

from accounting.privacy_loss import ATTO
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.noise.intervals import bounds, intervals
from mechanisms.noise.rate import Rate

#: The precision in bits of the interval arithmetic that computes the threshold and rounds it up.
_PRECISION = 200


@lru_cache(maxsize=1024)
def least_threshold(rate: Rate, delta_atto: int) -> int:
    """The least τ ≥ 2 with p^(τ−1) / (1 + p) ≤ δ, for p = e^−λ.

    Raises: UnsupportedQuery if δ is 0.
    """
    if delta_atto < 1:
        raise UnsupportedQuery(
            "open domains are private with a delta above 0 only: name it inside the query",
            supported={"delta": "above 0"},
        )
    iv = intervals(_PRECISION)
    exponent = iv.mpf(rate.a) / rate.b
    # For noise of rate λ and p = e^−λ, the threshold τ costs at most δ if (τ − 1)·λ ≥ −ln(δ·(1 +
    # p)). The upper end of the interval is safe, because it can only raise τ.
    least = -iv.log(iv.mpf(delta_atto) / ATTO * (1 + iv.exp(-exponent))) / exponent
    return max(2, ceil(bounds(least)[1]) + 1)


def release_probability(threshold: int, p: Fraction) -> Fraction:
    """P(1 + Z ≥ τ) as a rational of p = e^−λ, for τ ≥ 2: the δ of the threshold."""
    return p ** (threshold - 1) / (1 + p)
