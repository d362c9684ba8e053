"""The smooth bound of quantiles under add/remove against all windows of its definition."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.statistics.quantile_sensitivity import AddRemoveBound, SortedNumbers

QUANTILES = st.sampled_from(
    ["0", "1", "0.5", "0.25", "0.75", "0.1", "0.9", "0.37", "0.49", "0.51", "0.999"]
)


def rank(p: Fraction, count: int) -> int:
    return max(1, ceil(p * count))


def by_all_windows(numbers: list[int], p: Fraction, cap: int, beta: float) -> float:
    """Theorem 5.2, with every number c of insertions among the changes outside a window."""
    n, x = len(numbers), [0, *numbers, cap]
    horizon = max(n - 1, 0)
    best = max(1.0, exp(-beta * horizon) * cap)
    for s in range(min(horizon, ceil(log(max(cap, 2)) / beta) + 1)):
        for inside in range(s + 1):
            outside = s - inside
            ranks = []
            for c in range(outside + 1):
                for count, moved in (
                    (n + outside - 2 * c - inside, c),
                    (n + 2 * c - outside - inside, -c),
                ):
                    ranks += [rank(p, count + 1) - 1 + moved, rank(p, count - 1) + moved]
            for i in range(max(min(ranks), 0), min(max(ranks), n) + 1):
                best = max(best, exp(-beta * s) * (x[min(i + inside + 1, n + 1)] - x[i]))
    return best


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 100) | st.sampled_from([0, 1, 50, 99, 100]), max_size=12),
    QUANTILES,
    st.sampled_from([0.003, 0.05, 0.2, 1.0]),
)
def test_the_bound_is_that_of_all_windows(numbers: list[int], quantile: str, beta: float) -> None:
    p, ordered = Fraction(quantile), sorted(numbers)
    bound = AddRemoveBound(SortedNumbers(np.array(ordered, dtype=float), 0, 0, 100), p, 100)
    assert bound.smooth(beta) == pytest.approx(by_all_windows(ordered, p, 100, beta), rel=1e-12)
