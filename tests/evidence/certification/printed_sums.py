"""δ of weighted sums as the published experiments had it; never served.

Plain Python on one dataset: ``delta(i, r, t)`` is δ of member i.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Delta = Callable[[int, int, int], int]


def first_delta_for_every_term(
    weights: Sequence[int], delta: Delta, t: int, r: int, *, first: int
) -> int:
    """Weighted sums of the published runs: one δ for all terms, advanced once for each of them."""
    terms = len(weights)
    return sum(abs(weight) for weight in weights) * delta(first, r, terms * t + terms - 1)


def first_delta_in_step(weights: Sequence[int], delta: Delta, t: int, r: int, *, first: int) -> int:
    """The same, advanced once a step."""
    return sum(abs(weight) for weight in weights) * delta(first, r, t)
