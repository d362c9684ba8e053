"""Known breaches of rates: the printed δ of TPR must be rejected, each erratum by itself.

A state is (hits, misses, others); P = hits + misses ≥ 2, as the paper asks. Every counterexample is
the first of an enumeration in order of the number of records.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm

import numpy as np
import pytest

from mechanisms.model.domains import NeighbouringRelation
from tests.evidence.certification import checks
from tests.evidence.certification.checks import Array
from tests.evidence.certification.printed import dampened_odd
from tests.evidence.certification.printed_tables import rate_section_6_2_3 as printed
from tests.evidence.certification.tables import ADD_REMOVE, REPLACE, Table, members, neighbour_pairs

LARGEST = 8


def tabulated(listed: list[Table], rows: int, inclusive: bool) -> tuple[Array, Array]:
    """u and δ(0 … rows) of all states, in one unit that holds them exactly."""
    unit = lcm(*range(1, rows + 1), *(k * (k - 1) for k in range(2, rows + 1)))

    def whole(value: Fraction) -> int:
        assert (value * unit).denominator == 1
        return int(value * unit)

    utilities = [[whole(Fraction(h, h + m))] for h, m, _ in listed]
    deltas = [
        [[whole(printed(h, h + m, t, inclusive))] for t in range(rows + 1)] for h, m, _ in listed
    ]
    return np.array(utilities), np.array(deltas)


def smallest_breach(
    rule: str, inclusive: bool, relation: NeighbouringRelation
) -> tuple[int, Table, Table] | None:
    """(t, x, y) of the first breach of this rule alone."""
    for rows in range(2, LARGEST + 1):
        listed = [state for state in members(relation, 3, rows) if state[0] + state[1] >= 2]
        utilities, deltas = tabulated(listed, rows, inclusive)
        if rule == "A1":
            deltas = deltas[:, :1]
        else:
            utilities = np.zeros_like(utilities)
        breach = checks.admissibility_breach(utilities, deltas, neighbour_pairs(relation, listed))
        if breach is not None:
            assert breach.rule == rule
            return breach.t, listed[breach.x], listed[breach.y]
    return None


def smallest_fall(inclusive: bool) -> tuple[int, int] | None:
    """(hits, positives) of the first state whose δ is smaller one change further away."""
    for rows in range(2, LARGEST + 1):
        listed = [state for state in members(REPLACE, 3, rows) if state[0] + state[1] >= 2]
        _, deltas = tabulated(listed, rows, inclusive)
        for state, delta in zip(listed, deltas, strict=True):
            # One step is added to every δ, because ``shape_breach`` demands that δ is at least one
            # step.
            raised = delta[None] + 1
            if checks.shape_breach(raised, int(raised.max()), rows + 1) == "decreasing in t":
                return state[0], state[0] + state[1]
    return None


def test_the_branch_takes_misses_where_hits_move_more() -> None:
    """Erratum 8a: (TP, FN) = (2, 1) has δ(0) = 1/6; without the miss the rate is 1, not 2/3."""
    assert smallest_breach("A1", False, ADD_REMOVE) == (0, (2, 1, 0), (2, 0, 0))
    assert printed(2, 3, 0, False) == Fraction(1, 6) < Fraction(1, 3)


def test_the_floors_make_delta_fall_and_vanish() -> None:
    """Erratum 8b: P = 3, TP = 1 falls from 1/6 to 0; read as ≤, (2, 0) does not move at all."""
    assert smallest_fall(False) == (1, 3)
    assert [printed(1, 3, t, False) for t in (0, 1)] == [Fraction(1, 6), 0]
    assert smallest_breach("A1", True, ADD_REMOVE) == (0, (2, 0, 0), (2, 1, 0))
    assert printed(2, 2, 0, True) == 0


def test_one_change_later_delta_is_larger_than_foreseen() -> None:
    """Erratum 8c: (A2) fails, at first by the floors and then without them."""
    assert smallest_breach("A2", False, ADD_REMOVE) == (0, (0, 2, 0), (1, 2, 0))
    assert printed(3, 5, 1, False) == Fraction(1, 12) < printed(2, 4, 0, False) == Fraction(1, 6)


@pytest.mark.parametrize(
    "inclusive, x, y", [(False, (1, 1, 0), (2, 0, 0)), (True, (2, 0, 0), (1, 1, 0))]
)
def test_a_replacement_moves_the_rate_further(inclusive: bool, x: Table, y: Table) -> None:
    """Erratum 8d: Δ is that of a replacement, δ is not: a hit becomes a miss."""
    assert smallest_breach("A1", inclusive, REPLACE) == (0, x, y)
    assert smallest_breach("A2", inclusive, REPLACE) is not None
    # The printed δ is too small also where its floors of 2 on the counts have no effect: a
    # replacement moves the rate of four positives by 1/4, but this δ is 1/6.
    assert printed(2, 4, 0, False) == Fraction(1, 6) < Fraction(1, 4)


@pytest.mark.parametrize(
    "x, y, inclusive, expected",
    [
        ((3, 9), (4, 10), True, 3.35),
        ((3, 9), (4, 10), False, 2.36),
        ((21, 59), (22, 59), True, 6.03),
        ((30, 80), (29, 79), False, 4.93),
    ],
)
def test_the_printed_rate_moves_scores_by_many_units(
    x: tuple[int, int], y: tuple[int, int], inclusive: bool, expected: float
) -> None:
    """What the four do to a score that may move by one; (hits, positives) of neighbours."""

    def dampened(hits: int, total: int) -> Fraction:
        steps = [min(printed(hits, total, t, inclusive), Fraction(1)) for t in range(2 * total)]
        return dampened_odd(Fraction(hits, total), steps)

    assert abs(abs(float(dampened(*x) - dampened(*y))) - expected) < 0.006
