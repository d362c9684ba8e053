"""Scores and budgets of several objectives as the papers print them, for the checks to reject.

The service uses none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from math import prod

Law = Callable[[Sequence[int], Fraction], Sequence[Fraction]]
#: One row for each utility of an objective, with one number per candidate: its utility, or its
#: sensitivity δ, which is the same at every distance t.
Rows = Sequence[Sequence[int]]


def pareto_score(values: Rows, r: int) -> int:
    return -sum(dominates(values, s, r) for s in range(len(values[0])))


def dominates(values: Rows, s: int, r: int) -> bool:
    return all(row[s] > row[r] for row in values)


def definition_4_5(
    values: Rows, deltas: Rows, t: int, r: int, *, inclusive: bool = False, itself: bool = True
) -> int:
    """PrivPareto, Definition 4.5: |dom⁻_t| + |ndom⁺_t|.

    As printed a dominator may be lost only when boxes overlap (``inclusive``: or touch), and
    ``itself`` is among those who may come to dominate.
    """

    def low(i: int, s: int) -> int:
        return values[i][s] - (t + 1) * deltas[i][s]

    def high(i: int, s: int) -> int:
        return values[i][s] + (t + 1) * deltas[i][s]

    members = range(len(values))

    def losable(s: int) -> bool:
        return any(low(i, s) < high(i, r) + inclusive for i in members)

    def gainable(s: int) -> bool:
        return all(high(i, s) > low(i, r) for i in members)

    candidates = range(len(values[0]))
    lost = sum(dominates(values, s, r) and losable(s) for s in candidates if s != r)
    gained = sum(
        not dominates(values, s, r) and gainable(s) for s in candidates if itself or s != r
    )
    return lost + gained


def algorithm_1(generations: int, selected: int, outputs: int) -> int:
    """PrivPareto, Algorithm 1: the number of its draws, each of which spends the whole ε."""
    return generations * selected + outputs


def algorithm_1_by_call(generations: int) -> int:
    """The number of calls, for the reading in which the draws of one call share ε."""
    return generations + 1


def transcript_law(law: Law, draws: int) -> Law:
    """The law of ``draws`` answers, each drawn by ``law`` from the same scores."""

    def joint(scores: Sequence[int], p: Fraction) -> list[Fraction]:
        return [prod(answers) for answers in product(law(scores, p), repeat=draws)]

    return joint
