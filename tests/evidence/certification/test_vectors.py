"""Worked values: small cases done by hand, which every formula must reproduce exactly."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from mechanisms.model.candidates import AllNodes
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.selection.dampening import dampened_scores, scores, shifted_scores
from mechanisms.utilities import UTILITIES
from mechanisms.utilities.betweenness_sensitivity import CoDegreeForm, DegreeForm
from mechanisms.utilities.egocentric_density import DensitySensitivity
from mechanisms.utilities.utility import Measurement
from tests.evidence.certification import graphs, printed
from tests.evidence.certification.graphs import dataset_of, flipped, graph_of, records_of
from tests.support.sequences import Sequences

A, B, V0, V1, V2, V3, V4, V5 = range(8)
#: A small graph: the joined nodes a and b share the neighbours v2 and v3. Only a is joined to v0
#: and v1, and only b to v4 and v5.
G0 = graph_of(
    8,
    [
        *((A, v) for v in (B, V0, V1, V2, V3)),
        *((B, v) for v in (V2, V3, V4, V5)),
        (V0, V1),
        (V4, V5),
    ],
)


def floors(values: list[Fraction], bits: int = 20) -> list[int]:
    return [(value * 2**bits) // 1 for value in values]


@pytest.mark.parametrize(
    "utility, delta, expected",
    [
        ("13/2", (3, 5, 5), "17/10"),
        ("3", (1, 2, 3), "2"),
        ("4", (4, 4, 4), "1"),
        ("-1/2", (3, 5, 5), "-1/6"),
        ("13", (6, 10, 12), "17/10"),
    ],
)
def test_dampening(utility: str, delta: tuple[int, ...], expected: str) -> None:
    doubled = Sequences([[2 * step for step in delta]], cap=2 * delta[-1])
    scores = dampened_scores(np.array([int(2 * Fraction(utility))]), doubled, 20)
    assert scores.tolist() == floors([Fraction(expected)])
    assert printed.dampened_odd(Fraction(utility), list(map(Fraction, delta))) == Fraction(expected)


def test_dampening_at_zero_ignores_leading_zeros() -> None:
    assert printed.dampened_odd(Fraction(0), [Fraction(0), Fraction(0), Fraction(1)]) == 0


def test_dampening_on_the_grid_rounds_down_for_both_signs() -> None:
    delta = Sequences([[6, 10, 12]] * 2, cap=12)
    assert dampened_scores(np.array([13, -13]), delta, 4).tolist() == [27, -28]


@pytest.mark.parametrize(
    "utility, delta, plus, minus",
    [
        ("13/2", ("5", *["15/2"] * 6), "8/15", "6/5"),
        ("0", ("2", "3", "4", "5", *["15/2"] * 3), "-32/15", "32/15"),
    ],
)
def test_shift(utility: str, delta: tuple[str, ...], plus: str, minus: str) -> None:
    doubled = Sequences([[int(2 * Fraction(step)) for step in delta]], cap=15)
    utilities = np.array([int(2 * Fraction(utility))])
    assert shifted_scores(utilities, doubled, 20, 1).tolist() == floors([Fraction(plus)])
    assert shifted_scores(utilities, doubled, 20, -1).tolist() == floors([Fraction(minus)])


def test_the_shifted_score_is_the_dampened_one_of_a_far_shift() -> None:
    """D of u − s plus s/Δ no longer depends on s once |u − s| has passed the horizon."""
    row = [4, 6, 8, 10]
    cap, shift = 15, 15_000
    for utility in (-7, 0, 13):
        far = printed.dampened_odd(
            Fraction(utility - shift), [*map(Fraction, row), Fraction(cap)]
        ) + Fraction(shift, cap)
        score = shifted_scores(np.array([utility]), Sequences([row], cap), 20, 1)
        assert score.tolist() == floors([far])


def test_local_sensitivities_of_the_example_graph() -> None:
    def steepest(graph: graphs.Graph) -> list[Fraction]:
        here = [graphs.egocentric_betweenness(graph, v) for v in range(8)]
        return [
            max(
                abs(graphs.egocentric_betweenness(flipped(graph, a, b), v) - here[v])
                for a, b in combinations(range(8), 2)
            )
            for v in range(8)
        ]

    at_zero = steepest(G0)
    assert at_zero == [3, 3, 2, 2, 1, 1, 2, 2]
    near = [steepest(flipped(G0, a, b)) for a, b in combinations(range(8), 2)]
    assert [max(column) for column in zip(at_zero, *near, strict=True)] == [5, 5, 3, 3, 2, 2, 3, 3]


def test_egocentric_betweenness_of_the_example_graph() -> None:
    records, dataset = records_of(G0), dataset_of(8, 7)
    assert records.columns["degree"][[A, V0]].tolist() == [5, 2]
    assert records.columns["co_degree"][[A, V0]].tolist() == [2, 1]
    assert graphs.egocentric_betweenness(G0, A) == Fraction(13, 2)
    assert graphs.egocentric_betweenness(G0, V0) == 0

    utility = UTILITIES["egocentric_betweenness"]
    grid = utility.grid(dataset, AllNodes(), Sensitivity.SHIFTED)
    one = 1 << grid.bits
    assert (grid.cap, grid.horizon) == (15 * one // 2, 7)

    def measured(sensitivity: Sensitivity) -> Measurement:
        return utility.measure(records, dataset, AllNodes(), sensitivity, grid)

    def sequence(sensitivity: Sensitivity, v: int) -> list[Fraction]:
        delta = measured(sensitivity).delta
        return [Fraction(int(delta.at(t, np.array([v]))[0]), one) for t in range(7)]

    cap = Fraction(15, 2)
    assert sequence(Sensitivity.SHIFTED, A) == [5, *[cap] * 6]
    assert sequence(Sensitivity.SHIFTED, V0) == [2, 3, 4, 5, *[cap] * 3]
    assert sequence(Sensitivity.LOCAL, A) == [5, 6, 6, 6, *[cap] * 3]
    assert sequence(Sensitivity.LOCAL, V0) == [2, 3, 4, 5, 6, *[cap] * 2]

    by_degree = measured(Sensitivity.SHIFTED)
    pair = scores(by_degree, grid, Sensitivity.SHIFTED, 20, 1)[[A, V0]]
    assert pair.tolist() == floors([Fraction(8, 15), Fraction(-32, 15)])
    assert dampened_scores(*vars(by_degree).values(), 20)[A] == floors([Fraction(6, 5)])[0]
    by_co_degree = scores(measured(Sensitivity.LOCAL), grid, Sensitivity.LOCAL, 20, 1)
    assert by_co_degree[A] == floors([1 + Fraction(3, 2) / 6])[0]


@pytest.mark.parametrize("bound, delta", [(1, 0), (2, 1), (3, 2), (4, 3), (5, 4), (6, 5)])
def test_the_global_sensitivity_of_egocentric_betweenness(bound: int, delta: int) -> None:
    utility = UTILITIES["egocentric_betweenness"]
    grid = utility.grid(dataset_of(9, bound), AllNodes(), Sensitivity.GLOBAL)
    assert grid.cap == max(1, delta << grid.bits)


@pytest.mark.parametrize(
    "degree, expected",
    [
        (0, ["0", "1", "1"]),
        (1, ["1", "1", "1"]),
        (2, ["1", "1", "1"]),
        (3, ["2/3", "1", "1"]),
        (5, ["2/5", "1/2", "2/3"]),
    ],
)
def test_the_sensitivity_of_egocentric_density(degree: int, expected: list[str]) -> None:
    dataset = dataset_of(9, 8)
    grid = UTILITIES["egocentric_density"].grid(dataset, AllNodes(), Sensitivity.LOCAL)
    assert grid.bits == 32
    delta = DensitySensitivity.of(np.array([degree]), dataset, grid)
    exact = [-(-(Fraction(value) * 2**32) // 1) for value in expected]
    assert [int(delta.at(t, np.array([0]))[0]) for t in range(3)] == [max(1, e) for e in exact]


def test_the_degree_moves_by_one() -> None:
    grid = UTILITIES["degree"].grid(dataset_of(9, 8), AllNodes(), Sensitivity.LOCAL)
    assert (grid.bits, grid.cap, grid.horizon, grid.largest) == (0, 1, 1, 8)


@pytest.mark.parametrize(
    "bound, sensitivity, bits",
    [
        (10_000, Sensitivity.SHIFTED, 24),
        (37_699, Sensitivity.SHIFTED, 18),
        (317_079, Sensitivity.SHIFTED, 9),
        (500, Sensitivity.SHIFTED, 26),
        (37_699, Sensitivity.LOCAL, 26),
        (317_079, Sensitivity.LOCAL, 26),
    ],
)
def test_the_grids_of_egocentric_betweenness(
    bound: int, sensitivity: Sensitivity, bits: int
) -> None:
    grid = UTILITIES["egocentric_betweenness"].grid(
        dataset_of(317_080, bound), AllNodes(), sensitivity
    )
    assert grid.bits == bits
    assert max(grid.largest, grid.cap) < 2**62
    if sensitivity is Sensitivity.SHIFTED:
        assert grid.horizon * grid.cap < 2**62


def test_both_forms_agree_with_the_vectors_when_made_by_hand() -> None:
    by_degree = DegreeForm.of(np.array([5, 2]), 7, 2)
    assert by_degree.shortfall().tolist() == [4 * 15 // 2 - 20, (30 - 8) + 18 + 14 + 10]
    by_co_degree = CoDegreeForm.of(np.array([5, 2]), np.array([2, 1]), 7, 2)
    assert by_co_degree.shortfall().tolist() == [10 + 6 * 3, 22 + 18 + 14 + 10 + 6]
