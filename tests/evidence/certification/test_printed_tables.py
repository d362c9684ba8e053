"""Known breaches of tables: what the papers print must be rejected by the checks in use.

Each test finds its smallest counterexample by enumeration, universes in order of size, so that a
checker which looks away is noticed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from mechanisms.model.domains import NeighbouringRelation
from tests.evidence.certification import checks, printed_tables, tables
from tests.evidence.certification.printed_tables import psi
from tests.evidence.certification.tables import ADD_REMOVE, REPLACE, Table

Relation = NeighbouringRelation


def impurity_breach(
    delta: Callable[[list[list[int]], int, int], int],
    relation: Relation,
    largest: int = 6,
    slack: int = 2,
) -> tuple[int, str, int, Table, Table] | None:
    """(N, rule, t, x, y) of the first breach, of one or two levels and two classes.

    The values get the slack of rounding on top, so nothing is rejected for its last digit.
    """
    for rows in range(1, largest + 1):
        for levels in (1, 2):
            listed = tables.members(relation, 2 * levels, rows)
            counts = [np.array(table).reshape(levels, 2).tolist() for table in listed]
            utilities = [[tables.information_gain(c, 32)] for c in counts]
            deltas = [
                [[delta(c, t, rows) + slack * t + 1] for t in range(rows + 1)] for c in counts
            ]
            pairs = tables.neighbour_pairs(relation, listed)
            breach = checks.admissibility_breach(np.array(utilities), np.array(deltas), pairs)
            if breach is not None:
                return rows, breach.rule, breach.t, listed[breach.x], listed[breach.y]
    return None


def test_algorithm_3_with_its_guard_is_rejected_under_add_remove() -> None:
    """Erratum 4b: an empty table would never move, one record later it moves by two bits."""
    breach = impurity_breach(printed_tables.algorithm_3, ADD_REMOVE)
    assert breach == (1, "A2", 0, (0, 0), (1, 0))
    guarded = printed_tables.algorithm_3
    assert [guarded([[0, 0]], t, 100) for t in (0, 1, 5)] == [0, 0, 0]
    assert guarded([[1, 0]], 0, 100) == psi(1) == 2 << 32


def test_algorithm_3_with_its_guard_is_rejected_under_replace() -> None:
    breach = impurity_breach(printed_tables.algorithm_3, REPLACE)
    assert breach == (2, "A2", 0, (1, 1), (2, 0))
    # The counterexample of the errata: with its guard, the printed sensitivity function δ is 2 at
    # distance 1. But at distance 0 of a dataset one replacement away it is already ψ(2) = 2.754888.
    guarded = printed_tables.algorithm_3
    assert guarded([[1, 1]], 1, 2) == 2 << 32
    assert guarded([[0, 2]], 0, 2) == psi(2) == round(2.7548875021634687 * 2**32)


def test_algorithm_3_without_its_guard_passes_under_add_remove() -> None:
    assert impurity_breach(printed_tables.algorithm_3_without_guard, ADD_REMOVE) is None


@pytest.mark.parametrize("rows, expected", [(100, 24.75), (1000, 175.3)])
def test_the_guard_moves_shifted_scores_by_many_units(rows: int, expected: float) -> None:
    """An empty node and a node of one record, S = (u − Σ(Δ − δ))/Δ; one unit is allowed."""
    cap = psi(rows - 1)
    scores = [
        -sum(cap - printed_tables.algorithm_3(counts, t, rows) for t in range(rows)) / cap
        for counts in ([[0, 0]], [[1, 0]])
    ]
    assert scores[1] - scores[0] == pytest.approx(expected, rel=1e-3)


def test_a_cap_from_the_table_itself_is_rejected() -> None:
    """Erratum 4c: |T| is private under add/remove, so ψ(|T| − 1) is no bound."""
    breach = impurity_breach(printed_tables.algorithm_3_capped_by_the_table, ADD_REMOVE)
    assert breach == (2, "A2", 0, (1, 0), (2, 0))


def test_equation_2_prefers_the_attribute_that_says_nothing() -> None:
    """Erratum 4a: the sign. It is no breach of privacy; it selects the worst attribute."""
    pure, mixed = [[5, 0], [0, 5]], [[3, 2], [2, 3]]
    assert printed_tables.equation_2(pure) < printed_tables.equation_2(mixed)
    assert tables.information_gain(pure, 32) > tables.information_gain(mixed, 32)


def rounding_breach(allowed: int, bits: int, largest: int) -> tuple[int, str, Table, Table] | None:
    for rows in range(2, largest + 1):
        listed = tables.members(ADD_REMOVE, 2, rows)
        utilities = [[tables.information_gain([pair], bits)] for pair in listed]
        bare = printed_tables.rounded_without_slack
        deltas = [
            [[bare((a, b), t, rows, bits, allowed)] for t in range(rows + 1)] for a, b in listed
        ]
        pairs = tables.neighbour_pairs(ADD_REMOVE, listed)
        breach = checks.admissibility_breach(np.array(utilities), np.array(deltas), pairs)
        if breach is not None:
            return rows, breach.rule, listed[breach.x], listed[breach.y]
    return None


def test_rounded_logarithms_without_slack_are_rejected() -> None:
    """Rounding breaks concavity by one unit, for (A1) first, and with one unit for (A2)."""
    assert rounding_breach(-1, 1, 12) == (8, "A1", (4, 3), (4, 4))
    constant = rounding_breach(0, 1, 25)
    assert constant is not None
    assert constant[1] == "A2"
    assert rounding_breach(2, 1, 25) is None
