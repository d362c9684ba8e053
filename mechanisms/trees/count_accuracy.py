"""Public bounds on the noise of a released count; for information only."""

from __future__ import annotations

from math import ceil, exp, log

from accounting.privacy_loss import NANO


def count_error(epsilon_nano: int, confidence: float) -> int:
    """The least x with P(|noise| ≤ x) ≥ ``confidence`` for discrete Laplace of rate ε."""
    rate = epsilon_nano / NANO
    # P(|noise| > x) = 2·p^(x + 1) / (1 + p), p = e^−ε.
    return max(0, ceil(log(2 / ((1 + exp(-rate)) * (1 - confidence))) / rate) - 1)


def share_for_count_error(error: float, confidence: float) -> int:
    """The fewest nanos for which a count errs by at most ``error`` > 0."""
    low, high = 1, NANO
    while count_error(high, confidence) > error:
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        if count_error(middle, confidence) > error:
            low = middle + 1
        else:
            high = middle
    return high
