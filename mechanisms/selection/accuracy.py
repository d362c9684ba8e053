"""Public bounds on how far below the best a selected candidate may score; for information only.

Every draw runs at λ = ε / 2k per unit of sensitivity; its share ε/k is rounded down to 10⁻⁹. Let
m·e^(−λx) bound the chance that *some* draw takes a candidate more than x below the best that
remains. Then x = (2k/ε)·ln(m / (1 − confidence)) is exceeded with probability at most 1 −
confidence. If no draw does so, the j-th drawn is within x of the j-th best, because only j − 1
candidates are gone by then.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, log

from accounting.privacy_loss import NANO, PrivacyLoss


def error_bound(misses: Fraction, loss: PrivacyLoss, k: int, confidence: float) -> float:
    """x for m = ``misses``, in units of the sensitivity."""
    share = loss.epsilon_nano // k
    if share < 1:
        raise ValueError("a bound needs a positive share of the loss for every draw")
    return 2 * _units(misses, confidence) * NANO / share


def loss_bound(misses: Fraction, error: float, k: int, confidence: float) -> PrivacyLoss:
    """The loss at which x falls to ``error`` > 0, rounded up to k equal shares."""
    if not error > 0:
        raise ValueError(f"the error must be positive, got {error}")
    return PrivacyLoss(max(1, ceil(2 * _units(misses, confidence) * NANO / error))) * k


def _units(misses: Fraction, confidence: float) -> float:
    """λ·x, or zero if m is already below 1 − confidence."""
    if not 0 < confidence < 1:
        raise ValueError(f"the confidence lies between 0 and 1, got {confidence}")
    return max(0.0, log(misses / Fraction(1 - confidence))) if misses else 0.0
