"""The least loss that brings noise down to a target: a bisection over whole nanos."""

from __future__ import annotations

from collections.abc import Callable

from accounting.privacy_loss import NANO, PrivacyLoss
from mechanisms.model.errors import UnsupportedQuery

#: No query is charged more than ε = 10⁶.
MOST = 10**6 * NANO


def least_loss(noise: Callable[[PrivacyLoss], float], target: float) -> PrivacyLoss:
    """The least loss with ``noise`` at most ``target``.

    ``noise``: the scale of the noise at a loss. It does not grow with the loss, and it raises
    UnsupportedQuery for a loss that is too small to be divided among the releases.
    """
    if not target > 0:
        raise UnsupportedQuery("a scale of noise is positive")

    def reached(nano: int) -> bool:
        try:
            return noise(PrivacyLoss(nano)) <= target
        except UnsupportedQuery:
            return False

    if not reached(MOST):
        raise UnsupportedQuery("no epsilon up to 1000000 reaches this scale of noise")
    low, high = 0, MOST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return PrivacyLoss(high)
