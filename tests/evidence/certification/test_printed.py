"""Known breaches: the checks that pass the formulas in use must reject the formulas as printed.

For each, the smallest counterexample of the enumeration is stated, so that a checker which looks
away is noticed.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from tests.evidence.certification import checks, graphs, printed
from tests.evidence.certification.universes import graph_universe

# The number of grid steps in one unit: quarters, thirds and fifths are whole numbers of steps.
UNIT = 60


def first_breach(
    utility: printed.Utility, delta: printed.Delta, up_to: int = 5
) -> tuple[tuple[int, int], checks.Breach] | None:
    """The first universe (nodes, max_degree), smallest first, with a breach, and the breach."""
    for nodes in range(2, up_to + 1):
        for bound in range(1, nodes):
            universe = graph_universe(nodes, bound)
            utilities, deltas = printed.tabulated(
                graphs.all_graphs(nodes, bound), utility, delta, bound, bound + 1, UNIT
            )
            breach = checks.admissibility_breach(utilities, deltas, universe.pairs)
            if breach is not None:
                return (nodes, bound), breach
    return None


def test_density_lemma_7_2_is_not_monotone() -> None:
    """Erratum 9a: at d − t = 3 the value is 2, one change later it is 1."""
    first = first_breach(graphs.egocentric_density, printed.density_lemma_7_2)
    assert first is not None
    (nodes, bound), breach = first
    assert (nodes, bound, breach.rule, breach.t) == (4, 3, "A2", 0)
    x, y = (list(graphs.all_graphs(nodes, bound))[i] for i in (breach.x, breach.y))
    delta = printed.density_lemma_7_2
    # In graph x the node of the counterexample has two neighbours, and in graph y it has a third
    # one as well.
    assert x[breach.candidate].bit_count() == 2
    assert y[breach.candidate].bit_count() == 3
    assert delta(y, breach.candidate, 0, bound) == 2
    assert delta(x, breach.candidate, 1, bound) == 1
    assert len(graphs.edges_of(y)) == 3
    # Even for graph y alone the printed sensitivity function δ falls as the distance t grows.
    assert delta(y, breach.candidate, 1, bound) == 1


def test_density_lemma_7_2_clamped_at_one_is_admissible_but_loose() -> None:
    assert first_breach(graphs.egocentric_density, printed.density_lemma_7_2_clamped) is None
    star = graphs.graph_of(6, [(0, v) for v in range(1, 6)])
    assert printed.density_lemma_7_2_clamped(star, 0, 0, 5) == Fraction(2, 3) > Fraction(2, 5)


@pytest.mark.parametrize("bound, exact, paper", [(2, 1, 2), (3, 2, 3), (4, 3, 4)])
def test_betweenness_lemma_5_2_is_safe_but_not_attained(bound: int, exact: int, paper: int) -> None:
    """Erratum 3a: enumeration attains g(D − 1), the paper's Δ is larger."""
    universe = graph_universe(5, bound)
    utilities = np.array(
        [
            [int(graphs.egocentric_betweenness(graph, v) * UNIT) for v in range(5)]
            for graph in graphs.all_graphs(5, bound)
        ]
    )
    assert checks.largest_change(utilities, universe.pairs) == exact * UNIT
    assert exact == printed.steps(bound - 1)
    assert printed.betweenness_lemma_5_2(bound) == paper > exact


def test_betweenness_definition_5_3_is_safe_but_never_reaches_the_true_cap() -> None:
    """Erratum 3b: admissible, and above Δ = g(D − 1) from d + t = D on."""
    assert first_breach(graphs.egocentric_betweenness, printed.betweenness_definition_5_3) is None
    full = graphs.graph_of(5, [(0, v) for v in range(1, 5)])
    assert printed.betweenness_definition_5_3(full, 0, 0, 4) == 4 > printed.steps(3)


def test_betweenness_with_the_observed_maximum_degree_is_rejected() -> None:
    """A bound taken from the records: one more edge at the hub, and δ of others jumps."""
    first = first_breach(graphs.egocentric_betweenness, printed.betweenness_observed_degree)
    assert first is not None
    assert first[0] == (3, 2)
    assert first[1].rule == "A1"


def test_betweenness_without_the_quadratic_half_needs_eight_nodes() -> None:
    """k shared neighbours of one edge's ends: k(k − 1)/4 exceeds D − 1 from k = D − 1 = 6 on."""
    assert first_breach(graphs.egocentric_betweenness, printed.betweenness_linear_half) is None
    shared = [(hub, v) for hub in (0, 1) for v in range(2, 8)]
    before, after = (graphs.graph_of(8, edges) for edges in (shared, [*shared, (0, 1)]))
    utilities, deltas = printed.tabulated(
        [before, after],
        graphs.egocentric_betweenness,
        printed.betweenness_linear_half,
        7,
        1,
        60 * 14,
    )
    breach = checks.admissibility_breach(utilities, deltas, np.array([[0, 1]]))
    assert breach is not None
    assert breach.rule == "A1"
    assert graphs.egocentric_betweenness(before, 0) - graphs.egocentric_betweenness(
        after, 0
    ) == Fraction(15, 2)


def exact_local_sensitivities(utilities: tuple[int, ...], horizon: int) -> list[list[Fraction]]:
    """LS(x, t) on a path of datasets 0 – 1 – 2 …: the smallest admissible δ there is."""
    size = len(utilities)
    at_zero = [
        max(abs(utilities[x] - utilities[y]) for y in (x - 1, x, x + 1) if 0 <= y < size)
        for x in range(size)
    ]
    return [
        [Fraction(max(at_zero[max(0, x - t) : x + t + 1])) for t in range(horizon)]
        for x in range(size)
    ]


def worst_difference(
    size: int, rules: tuple[printed.Rule, printed.Rule]
) -> tuple[Fraction, tuple[int, ...]]:
    """Over all utilities in {0, 1} on a path: the largest |D_x − D_y|, x and y by their rule."""
    worst, where = Fraction(0), (0,) * size
    for utilities in product((0, 1), repeat=size):
        if len(set(utilities)) == 1:
            # All utilities are equal. So the sensitivity function δ is 0 at every distance, and the
            # rules, which divide by δ, do not apply.
            continue
        deltas = exact_local_sensitivities(utilities, size)
        for x in range(size):
            for y in (x - 1, x + 1):
                if 0 <= y < size:
                    left = rules[0](Fraction(utilities[x]), deltas[x])
                    right = rules[1](Fraction(utilities[y]), deltas[y])
                    if abs(left - right) > worst:
                        worst, where = abs(left - right), utilities
    return worst, where


@pytest.mark.parametrize("rule", [printed.dampened_as_printed, printed.dampened_odd])
def test_either_rule_of_definition_3_6_alone_has_sensitivity_one(rule: printed.Rule) -> None:
    for size in range(2, 8):
        assert worst_difference(size, (rule, rule))[0] == 1


def test_mixing_the_rules_of_definition_3_6_is_rejected() -> None:
    """Erratum 1a: k leading zeros of δ give k by the printed rule and 0 by the odd one."""
    mixed = (printed.dampened_as_printed, printed.dampened_odd)
    assert [worst_difference(size, mixed)[0] for size in range(2, 7)] == [1, 1, 2, 3, 4]
    assert worst_difference(4, mixed)[1] == (0, 0, 0, 1)


def test_the_cap_alone_does_not_make_every_delta_reach_it() -> None:
    """Erratum 1b: one bit x, u(·, r₁) = 0 and u(x, r₂) = x; Δu = 1 but δ(·, r₁) stays 0."""
    delta = np.zeros((2, 6, 2), dtype=np.int64)
    delta[:, :, 1] = 1
    utilities = np.array([[0, 0], [0, 1]])
    pairs = np.array([[0, 1]])
    assert checks.admissibility_breach(utilities, delta, pairs) is None
    capped = np.minimum(np.maximum(delta, 0), 1)
    assert checks.shape_breach(capped, cap=1, horizon=4) == "below one step"
    # Even if every sensitivity function δ is at least one step of a finer grid, it may stay below
    # the cap (the largest change of a utility). From the horizon on, here distance 4, it must equal
    # the cap.
    finer = np.maximum(8 * capped, 1)
    reason = "the cap is not reached at the horizon"
    assert checks.shape_breach(finer, cap=8, horizon=4) == reason
    finer[:, 4:] = 8
    assert checks.shape_breach(finer, cap=8, horizon=4) is None
    assert checks.admissibility_breach(8 * utilities, finer, pairs) is None


def test_without_a_common_cap_the_shifted_limit_forgets_the_utilities() -> None:
    """Erratum 2a: δ(·, r₁) → 1 and δ(·, r₂) → 2; the scores part by s/2, whatever u is."""
    for best, other in ((0, 9), (9, 0)):
        gaps = [
            printed.dampened_odd(Fraction(best - s), [Fraction(1)])
            - printed.dampened_odd(Fraction(other - s), [Fraction(2)])
            for s in (100, 1000, 10_000)
        ]
        assert all(abs(gap + s / 2) < 10 for gap, s in zip(gaps, (100, 1000, 10_000), strict=True))
    # If every sensitivity function δ equals one common cap from some distance on, the gap between
    # the two dampened scores does not depend on the shift s. It is the difference of the shifted
    # scores.
    delta = [Fraction(1)] * 4 + [Fraction(2)]
    settled = {
        printed.dampened_odd(Fraction(3 - s), delta)
        - printed.dampened_odd(Fraction(5 - s), [Fraction(2)])
        for s in (100, 1000, 10_000)
    }
    shortfall = 4
    assert settled == {Fraction(3 - shortfall, 2) - Fraction(5, 2)}
