"""Exact checks on integers and rationals; each returns the first counterexample or None.

They are independent of the utilities. The same functions accept the formulas in use and reject
the printed ones, which shows that they can fail.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.int64]
Law = Callable[[Sequence[int], Fraction], Sequence[Fraction]]


@dataclass(frozen=True)
class Breach:
    """A violation between dataset x and its neighbour y: the rule, t and the candidate."""

    rule: str
    x: int
    y: int
    t: int
    candidate: int


def admissibility_breach(utilities: Array, delta: Array, pairs: Array) -> Breach | None:
    """The first neighbours that violate (A1) or (A2), in either direction, or None.

    ``utilities`` (datasets, candidates), ``delta`` (datasets, t, candidates), one common unit.
    """
    both = np.concatenate([pairs, pairs[:, ::-1]])
    order = np.lexsort((both.min(axis=1), both.max(axis=1)))
    x, y = both[order].T
    moved = np.abs(utilities[x] - utilities[y]) > delta[x, 0]
    fell = delta[x, 1:] < delta[y, :-1]
    for k in np.flatnonzero(moved.any(axis=1) | fell.any(axis=(1, 2)))[:1]:
        if moved[k].any():
            return Breach("A1", int(x[k]), int(y[k]), 0, int(np.flatnonzero(moved[k])[0]))
        t, candidate = np.argwhere(fell[k])[0]
        return Breach("A2", int(x[k]), int(y[k]), int(t), int(candidate))
    return None


def shape_breach(delta: Array, cap: int, horizon: int) -> str | None:
    """δ ≥ 1, non-decreasing, at most the cap, and equal to it from the horizon on."""
    if (delta < 1).any():
        return "below one step"
    if (np.diff(delta, axis=1) < 0).any():
        return "decreasing in t"
    if (delta > cap).any():
        return "above the cap"
    if (delta[:, horizon:] != cap).any():
        return "the cap is not reached at the horizon"
    return None


def largest_change(values: Array, pairs: Array) -> int:
    """The largest change of any candidate's value between two neighbours."""
    return int(np.abs(values[pairs[:, 0]] - values[pairs[:, 1]]).max(initial=0))


def privacy_breach(
    scores: Array, pairs: Array, law: Law, base: Fraction, steps: int
) -> tuple[list[int], list[int]] | None:
    """Two neighbours' scores whose laws differ by more than e^ε, or None.

    p = e^{−λ} is the ``base``, any rational in (0, 1): λ is the rate a grid step, and a loss ε
    on scores of sensitivity 2^q runs at λ = ε / 2^{q + 1}, so e^ε = p^{−steps}, steps = 2^{q + 1}.
    The comparison is P_x(r) · p^steps ≤ P_y(r), in rationals. Pairs of score vectors that
    differ by an order of the candidates or a common shift have the same laws and are judged once.
    """
    shrink = base**steps

    @cache
    def cached(vector: tuple[int, ...]) -> tuple[Fraction, ...]:
        shares = tuple(law(vector, base))
        assert sum(shares) == 1
        return shares

    for left, right in _distinct(scores, pairs):
        p, q = cached(left), cached(right)
        if any(apart(a, b, shrink) for a, b in zip(p, q, strict=True)):
            return list(left), list(right)
    return None


def apart(left: Fraction, right: Fraction, shrink: Fraction) -> bool:
    """True if left · shrink > right or right · shrink > left.

    In whole numbers: a product of fractions would search for common factors, which costs more than
    all the rest of a certification.
    """
    a = left.numerator * right.denominator
    b = right.numerator * left.denominator
    smaller, larger = shrink.as_integer_ratio()
    return a * smaller > b * larger or b * smaller > a * larger


def _distinct(scores: Array, pairs: Array) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    x, y = scores[pairs[:, 0]], scores[pairs[:, 1]]
    x, y = x - x.min(axis=1, keepdims=True), y - y.min(axis=1, keepdims=True)
    order = np.lexsort((y, x), axis=1)
    x, y = np.take_along_axis(x, order, axis=1), np.take_along_axis(y, order, axis=1)
    rows = np.unique(np.concatenate([x, y], axis=1), axis=0)
    n = scores.shape[1]
    return [(tuple(row[:n].tolist()), tuple(row[n:].tolist())) for row in rows]
