"""δ of node utilities against the rational formulas, and their sums against summation."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.model.candidates import AllNodes
from mechanisms.model.sensitivity import Sensitivity, SensitivityFunction
from mechanisms.selection.dampening import scores
from mechanisms.utilities.betweenness_sensitivity import CoDegreeForm, DegreeForm
from mechanisms.utilities.covering import ConstantSensitivity
from mechanisms.utilities.degree import Degree
from mechanisms.utilities.egocentric_betweenness import EgocentricBetweenness
from mechanisms.utilities.egocentric_density import DensitySensitivity, EgocentricDensity
from tests.evidence.certification.graphs import dataset_of, graph_of, records_of
from tests.support.sequences import passed_one_by_one


@st.composite
def nodes(draw: st.DrawFn) -> tuple[int, list[int], list[int]]:
    """A public bound D ≤ 24 and the degrees and co-degrees of some nodes, κ ≤ d ≤ D.

    All pieces of δ lie below: d(d − 1)/4 exceeds d from 5 on, and m(m − 1)/4 the bound from 11 on.
    """
    bound = draw(st.integers(0, 24))
    degree = draw(st.lists(st.integers(0, bound), min_size=1, max_size=5))
    return bound, degree, [draw(st.integers(0, d)) for d in degree]


def ceiling(value: Fraction, bits: int) -> int:
    return max(1, -(-value * 2**bits // 1))


def g(k: int) -> Fraction:
    return max(Fraction(k * (k - 1), 4), Fraction(k))


def check(delta: SensitivityFunction, expected: list[list[int]]) -> None:
    """Compare δ with ``expected[r][t]`` for t = 0 … T + 2."""
    everyone = np.arange(len(expected))
    for t in range(delta.horizon + 3):
        column = [row[t] for row in expected]
        assert delta.at(t, everyone).tolist() == column
        assert delta.at(t, everyone[::-1][:2]).tolist() == column[::-1][:2]
        assert delta.largest(t) == max(column)
    assert all(value == delta.cap for row in expected for value in row[delta.horizon :])
    direct = [sum(delta.cap - value for value in row[: delta.horizon]) for row in expected]
    assert delta.shortfall().tolist() == direct
    ends = [[sum(row[:t]) for t in range(delta.horizon + 3)] for row in expected]
    for t in range(delta.horizon + 1):
        # The goals are sums of each candidate's sensitivity over the first t distances, sums that
        # are larger by 1, and the sum of the first candidate for all.
        for near in (0, 1):
            for goals in ([row[t] + near for row in ends], [ends[0][t] + near] * len(ends)):
                passed = delta.passed(np.array(goals)).T.tolist()
                assert passed == [list(row) for row in passed_one_by_one(delta, np.array(goals))]


@settings(max_examples=30)
@given(drawn=nodes(), bits=st.integers(1, 26))
def test_the_degree_form(drawn: tuple[int, list[int], list[int]], bits: int) -> None:
    bound, degree, _ = drawn
    top = max(bound - 1, 0)
    delta = DegreeForm.of(np.array(degree), bound, bits)
    times = range(max(bound, 1) + 3)
    check(delta, [[ceiling(g(min(d + t, top)), bits) for t in times] for d in degree])


@settings(max_examples=30)
@given(drawn=nodes(), bits=st.integers(1, 26))
def test_the_co_degree_form(drawn: tuple[int, list[int], list[int]], bits: int) -> None:
    bound, degree, shared = drawn
    top = max(bound - 1, 0)
    delta = CoDegreeForm.of(np.array(degree), np.array(shared), bound, bits)

    def exact(d: int, k: int, t: int) -> Fraction:
        m = min(k + t, d + t, top)
        return max(Fraction(min(d + t, top)), Fraction(m * (m - 1), 4))

    times = range(max(bound, 1) + 3)
    expected = [
        [ceiling(exact(d, k, t), bits) for t in times] for d, k in zip(degree, shared, strict=True)
    ]
    check(delta, expected)
    by_degree = DegreeForm.of(np.array(degree), bound, bits)
    everyone = np.arange(len(degree))
    assert all((delta.at(t, everyone) <= by_degree.at(t, everyone)).all() for t in times)


@settings(max_examples=30)
@given(drawn=nodes(), bits=st.integers(1, 32))
def test_the_sensitivity_of_density(drawn: tuple[int, list[int], list[int]], bits: int) -> None:
    bound = drawn[0] + 2
    degree = [min(d + d % 3, bound) for d in drawn[1]]
    dataset = dataset_of(70, bound)
    grid = EgocentricDensity().grid(dataset, AllNodes(), Sensitivity.LOCAL).coarser(bits)
    delta = DensitySensitivity.of(np.array(degree), dataset, grid)

    def exact(d: int, t: int) -> Fraction:
        return Fraction(0) if d == t == 0 else Fraction(2, max(d - t, 2))

    times = range(delta.horizon + 3)
    check(delta, [[ceiling(exact(d, t), bits) for t in times] for d in degree])


def test_the_constant() -> None:
    check(ConstantSensitivity(cap=7, count=3, horizon=2), [[7] * 6] * 3)


def test_only_isolated_nodes_have_the_least_density_sensitivity() -> None:
    dataset = dataset_of(5, 4)
    grid = EgocentricDensity().grid(dataset, AllNodes(), Sensitivity.LOCAL)
    delta = DensitySensitivity.of(np.zeros(5, dtype=np.int64), dataset, grid)
    assert [delta.largest(t) for t in range(3)] == [1, grid.cap, grid.cap]


def test_sums_of_large_public_ranges_are_closed_forms() -> None:
    """D = 317,079 with the grid of shifted scores: exact below 2⁶², compared with Python sums."""
    bound = 317_079
    dataset = dataset_of(bound + 1, bound)
    grid = EgocentricBetweenness().grid(dataset, AllNodes(), Sensitivity.SHIFTED)
    degree = np.array([0, 1, 343, bound - 1, bound])
    totals = DegreeForm.of(degree, bound, grid.bits).shortfall()
    top = bound - 1

    def direct(d: int) -> int:
        terms = (max(k * (k - 1), 4 * k) for k in range(d, top))
        scaled = sum(grid.cap - (q << grid.bits >> 2) for q in terms)
        # At degree 0 the sensitivity g(0) is 0 and is raised to one step, so one step less is
        # missing to the cap.
        return scaled - (d == 0)

    assert totals.tolist() == [direct(int(d)) for d in degree]
    by_co_degree = CoDegreeForm.of(degree, np.minimum(degree, 57), bound, grid.bits).shortfall()
    assert (by_co_degree >= totals).all()
    assert by_co_degree.max() < 2**62


def test_each_mode_has_the_form_that_suits_it() -> None:
    graph = graph_of(4, [(0, 1), (1, 2), (2, 0), (2, 3)])
    records, dataset, everyone = records_of(graph), dataset_of(4, 3), AllNodes()
    forms = {
        sensitivity: [
            type(
                utility.measure(
                    records,
                    dataset,
                    everyone,
                    sensitivity,
                    utility.grid(dataset, everyone, sensitivity),
                ).delta
            )
            for utility in (Degree(), EgocentricDensity(), EgocentricBetweenness())
        ]
        for sensitivity in Sensitivity
    }
    constant = ConstantSensitivity
    assert forms == {
        Sensitivity.GLOBAL: [constant, constant, constant],
        Sensitivity.LOCAL: [constant, DensitySensitivity, CoDegreeForm],
        Sensitivity.FLATTENED: [constant, DensitySensitivity, CoDegreeForm],
        Sensitivity.SHIFTED: [constant, DensitySensitivity, DegreeForm],
    }


@pytest.mark.parametrize("degree", range(5, 25))
def test_shifted_betweenness_ranks_by_degree_up_to_a_share_of_the_bound(degree: int) -> None:
    """The worst pair: the centre of a star has all paths among its neighbours, a node of a clique
    with one neighbour more has none. For D = 30 the star overtakes from a degree of 17 on."""
    star = [(0, v) for v in range(1, degree + 1)]
    clique = range(degree + 1, 2 * degree + 3)
    graph = graph_of(60, [*star, *combinations(clique, 2)])
    dataset, everyone, shifted = dataset_of(60, 30), AllNodes(), Sensitivity.SHIFTED
    utility = EgocentricBetweenness()
    grid = utility.grid(dataset, everyone, shifted)
    measured = utility.measure(records_of(graph), dataset, everyone, shifted, grid)
    row = scores(measured, grid, shifted, 20, utility.direction)
    ahead = Fraction(int(row[clique[0]] - row[0]), 1 << 20)
    assert abs(ahead - (1 - Fraction(3 * degree * (degree - 1), 29 * 28))) < Fraction(1, 1 << 19)
    assert (ahead > 0) == (degree < 17) == (3 * degree * (degree - 1) < 29 * 28)
