"""δ of weighted sums as in the published experiments. The service uses none of it.

Plain Python on one dataset: ``delta(i, r, t)`` is δ of member i.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Delta = Callable[[int, int, int], int]


def first_delta_for_every_term(
    weights: Sequence[int], delta: Delta, t: int, r: int, *, first: int
) -> int:
    """The weighted sum of the published runs: one δ for all terms; t advances at every term."""
    terms = len(weights)
    return sum(abs(weight) for weight in weights) * delta(first, r, terms * t + terms - 1)


def first_delta_in_step(weights: Sequence[int], delta: Delta, t: int, r: int, *, first: int) -> int:
    """The same sum, but t advances once per step."""
    return sum(abs(weight) for weight in weights) * delta(first, r, t)
