"""Known breaches of several objectives: what the papers print must be rejected, as found here."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from mechanisms.selection import SELECTORS
from mechanisms.selection.laws import exponential_probabilities
from tests.evidence.certification import checks
from tests.evidence.certification.checks import Breach
from tests.evidence.certification.printed import dampened_odd
from tests.evidence.certification.printed_objectives import (
    algorithm_1,
    algorithm_1_by_call,
    definition_4_5,
    pareto_score,
    transcript_law,
)

Values = tuple[int, ...]
PAIR = np.array([[0, 1]])
STEPS = 4


def score_breach(
    x: Values, y: Values, *, common: bool, inclusive: bool, itself: bool
) -> Breach | None:
    """The first breach of the Pareto score of one utility that is x on one dataset, y on the other.

    Its own δ is exact: |x(r) − y(r)| at every t, or the largest of them for every candidate.
    """
    moved = [abs(a - b) for a, b in zip(x, y, strict=True)]
    delta = [max(moved)] * len(moved) if common else moved
    candidates = range(len(x))
    scores = [[pareto_score([u], r) for r in candidates] for u in (x, y)]
    deltas = [
        [
            [
                definition_4_5([u], [delta], t, r, inclusive=inclusive, itself=itself)
                for r in candidates
            ]
            for t in range(STEPS)
        ]
        for u in (x, y)
    ]
    return checks.admissibility_breach(np.array(scores), np.array(deltas), PAIR)


def smallest_breach(
    *, common: bool, inclusive: bool, itself: bool, candidates: int = 3, spread: int = 2
) -> tuple[str, Values, Values] | None:
    """(rule, x, y): fewest candidates first, then the smallest values."""
    for n in range(1, candidates + 1):
        for most in range(1, spread + 1):
            for x, y in product(product(range(most + 1), repeat=n), repeat=2):
                breach = score_breach(x, y, common=common, inclusive=inclusive, itself=itself)
                if breach is not None:
                    left, right = (x, y) if breach.x == 0 else (y, x)
                    return breach.rule, left, right
    return None


def test_definition_4_5_forgets_dominators_whose_boxes_touch() -> None:
    """Erratum 6a: a strict comparison in dom⁻. One change ties 0 and 1, yet nothing may be lost."""
    breach = smallest_breach(common=False, inclusive=False, itself=False)
    assert breach == ("A1", (0, 1), (0, 0))
    # Definition 4.5 of the paper on PrivPareto also fails if all candidates have one common
    # sensitivity function δ, as for degrees.
    breach = smallest_breach(common=True, inclusive=False, itself=False)
    assert breach == ("A1", (0, 2), (1, 1))
    assert definition_4_5([(2, 0)], [(1, 1)], 0, 1, itself=False) == 0
    assert pareto_score([(2, 0)], 1) + 1 == pareto_score([(1, 1)], 1) == 0


def test_counting_itself_hides_the_tie_until_three_candidates() -> None:
    """Errata 6a and 6b together: the candidate itself pays for one lost dominator, not for two."""
    breach = smallest_breach(common=True, inclusive=False, itself=True)
    assert breach is not None
    rule, x, y = breach
    assert (rule, len(x)) == ("A1", 3)
    assert {x, y} == {(0, 2, 2), (1, 1, 1)}


@pytest.mark.parametrize("common", [False, True])
@pytest.mark.parametrize("itself", [False, True])
def test_with_ties_counted_the_definition_passes(common: bool, itself: bool) -> None:
    assert smallest_breach(common=common, inclusive=True, itself=itself) is None


def test_counting_itself_is_never_smaller() -> None:
    """Erratum 6b: accuracy alone. Example 4.6 gives 2 where 1 is enough."""
    values, half = [(6, 10, 8, 4, 2), (10, 6, 4, 8, 2)], [(1,) * 5] * 2
    # All values of the paper's example are doubled here, so that half a unit is 1. For its
    # candidate (4, 2), one change may only take away the dominator (5, 3), and no candidate may
    # come to dominate it.
    assert [
        definition_4_5(values, half, 0, 2, inclusive=True, itself=itself)
        for itself in (True, False)
    ] == [2, 1]


def test_twenty_ties_move_the_dampened_score_by_two_units() -> None:
    """What erratum 6a does to a score that may move by one."""
    x, y, delta = (*[2] * 20, 0), (1,) * 21, (1,) * 21
    dampened = [
        dampened_odd(
            Fraction(pareto_score([u], 20)),
            [
                Fraction(definition_4_5([u], [delta], t, 20, inclusive=inclusive, itself=False))
                for t in range(STEPS)
            ],
        )
        for inclusive in (False, True)
        for u in (x, y)
    ]
    assert dampened == [-2, 0, -1, 0]


SCORES = np.array(list(product(range(3), repeat=2)))
#: All pairs of score vectors of two candidates whose scores differ by at most one each, as those of
#: neighbouring datasets do.
NEIGHBOURS = np.array(
    [
        (i, j)
        for i, x in enumerate(SCORES)
        for j, y in enumerate(SCORES)
        if i < j and np.abs(x - y).max() <= 1
    ]
)
P = [Fraction(1, 3), Fraction(9, 10)]


def smallest_overspending(claimed: int = 1) -> tuple[int, int, int] | None:
    """(k, s, o), fewest draws first: a run of Algorithm 1 that loses more than claimed · ε."""
    runs = sorted(product(range(3), range(1, 3), range(1, 3)), key=lambda run: algorithm_1(*run))
    for run in runs:
        law = transcript_law(exponential_probabilities, algorithm_1(*run))
        for p in P:
            if checks.privacy_breach(SCORES, NEIGHBOURS, law, p, 2 * claimed) is not None:
                return run
    return None


def test_algorithm_1_spends_epsilon_once_a_draw() -> None:
    """One draw of the exponential mechanism is ε-DP; the next ones at ε each are not."""
    law = exponential_probabilities
    assert all(checks.privacy_breach(SCORES, NEIGHBOURS, law, p, 2) is None for p in P)
    # The smallest run of Algorithm 1 that loses more than ε has no generations and draws two
    # outputs in one call.
    example = smallest_overspending()
    assert example is not None
    assert algorithm_1(*example) == 2
    # A run of two calls, one for a generation and one for the output, with one draw each, also
    # loses more than ε.
    both = transcript_law(law, algorithm_1(1, 1, 1))
    assert all(checks.privacy_breach(SCORES, NEIGHBOURS, both, p, 2) is not None for p in P)


def test_what_algorithm_1_loses() -> None:
    """k = 3, s = 3, o = 3: 12ε, or 4ε; k = 2, s = 20, o = 1: 41ε, or 3ε. Never ε."""
    assert (algorithm_1(3, 3, 3), algorithm_1_by_call(3)) == (12, 4)
    assert (algorithm_1(2, 20, 1), algorithm_1_by_call(2)) == (41, 3)
    for draws in (2, 3):
        law = transcript_law(exponential_probabilities, draws)
        assert all(checks.privacy_breach(SCORES, NEIGHBOURS, law, p, 2 * draws) is None for p in P)


@pytest.mark.parametrize("selector", SELECTORS.values(), ids=SELECTORS)
def test_equal_shares_spend_epsilon_once(selector: object) -> None:
    """ε/4 for each of k·s + o = 4 draws: p⁴ is then e^−λ of the whole."""
    law = transcript_law(selector.probabilities, algorithm_1(1, 3, 1))  # type: ignore[attr-defined]
    for p in P:
        assert checks.privacy_breach(SCORES, NEIGHBOURS, law, p, 2 * 4) is None
